"""`bench env`: print the facts of this machine."""

import json

import click

from bench.cli import option_groups as options


@click.command("env")
@options.json_output
def command(as_json: bool) -> None:
    """Print what is stored of this machine with every result."""
    click.echo(environment(as_json))


def environment(as_json: bool) -> str:
    """Facts of this machine."""
    from bench.running.worker import WorkerSettings
    from results.environment import collect

    facts = collect(WorkerSettings.threads).to_json()
    if as_json:
        return json.dumps(facts, indent=1)
    return "\n".join(f"{key:<15} {value}" for key, value in facts.items())
