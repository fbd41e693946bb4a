"""`bench demo`: five mechanisms on one task, in about a minute."""

import click


@click.command("demo")
def command() -> None:
    """Compare five mechanisms on one string task; about a minute on two cores."""
