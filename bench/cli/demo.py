"""`bench demo`: five mechanisms on one task, in about a minute."""

import sys
from typing import TYPE_CHECKING, Any

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions


@click.command("demo")
@click.option("--seeds", default=0, help="Seeds of every mechanism. 0: two.")
@click.option(
    "--training", default="", help="Training options, for example adam[steps=100]. Default: 200 steps."
)
@options.out
@options.jobs
@options.inline
@options.json_output
@light_start
def command(**given: Any) -> None:
    """Compare five mechanisms on one string task; about a minute on two cores, no download.

    No attention, additive, dot product, monotonic, and additive with coverage learn to rewrite
    strings by a rule whose alignment is known. The demo prints attention weights beside that
    alignment, a table of scores and costs, and the path of the report. Started again, it goes on
    where it stopped.
    """
    from bench.cli.run_options import RunOptions

    sys.exit(demo(RunOptions.typed({**given, "preset": "demo", "verify": False})))


def demo(options: "RunOptions") -> int:
    """Run the demo; returns the exit code."""
    from bench.cli.registered import load_registry
    from bench.running.plan import plan

    load_registry(())
    made = plan(options.request)
    need_real_packages()
    from bench.cli.demo_text import demo_parts
    from bench.cli.execution import execute

    return execute(options, made, shown=demo_parts)
