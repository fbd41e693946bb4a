"""`bench demo`: five mechanisms on one task, in about a minute."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions


MECHANISMS = "none_state,additive,dot,raffel_monotonic,tu_coverage"
BASELINE = "additive"
TASK = "transduction[beyond=12,evaluate=128,max_length=6,rule=fert]"
"""Each symbol is translated and written a number of times that depends on it."""
TRAINING = "adam[evaluate_every=100,steps=200]"
"""So short that mechanisms differ in how fast they learn."""


@click.command("demo")
@click.option("--seeds", default=0, help="Seeds of every mechanism. 0: two.")
@click.option("--training", default=TRAINING, show_default=True, help="Training options.")
@options.out
@options.jobs
@options.inline
@options.json_output
@light_start
@options.run_options
def command(asked: "RunOptions") -> None:
    """Compare five mechanisms on one string task in a minute.

    It needs two cores and downloads nothing.

    No attention, additive, dot product, monotonic, and additive with coverage learn to rewrite
    strings by a rule whose alignment is known. The demo prints attention weights beside that
    alignment, a table of scores and costs, and the path of the report. Started again, it goes on
    where it stopped.
    """
    here = replace(asked, preset="demo", tasks=TASK, verify=False)
    sys.exit(demo(replace(here, variants=MECHANISMS, baseline=BASELINE)))


def demo(options: "RunOptions") -> int:
    """Run the demo; returns the exit code."""
    from bench.cli.registered import load_registry
    from bench.running.plan import plan
    from results.run_path import refuse_occupied

    refuse_occupied(options.folder)
    load_registry(())
    made = plan(options)
    need_real_packages()
    from bench.cli.demo_text import demo_parts
    from bench.cli.execution import execute

    cells = {cell.id for cell in made.cells}
    return execute(options, made, shown=lambda folder: demo_parts(folder, cells))
