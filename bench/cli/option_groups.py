"""Options that several commands share, each declared once."""

from collections.abc import Callable
from typing import Any

import click

from bench.api.registry import PLAIN
from bench.running.presets import PRESETS

Command = Callable[..., Any]

PRESET_HELP = f"Size of the run: {', '.join(PRESETS)}. `bench list presets` describes each."

VARIANTS = "Variants to run, as selectors separated by commas, or 'all'."

json_output = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, and nothing else, to standard output."
)
plugins = click.option(
    "--plugin", multiple=True, metavar="FILE", help="Python file that registers more names."
)
data_directory = click.option(
    "--data-dir", default="", metavar="DIR", help="Data directory. Default: $BENCH_DATA_DIR."
)
jobs = click.option("--jobs", default=0, help="Worker processes at a time. 0: one per core.")
inline = click.option("--inline", is_flag=True, help="Run in this process, for debuggers.")
out = click.option(
    "--out", default="", metavar="DIR", help="Run folder. Default: a folder below runs/."
)
implementation = click.option(
    "--impl", default="auto", show_default=True, help="Implementation of the mechanism."
)
probes = click.option(
    "--probes", default="", help="Probes to run on every trained model, or 'all'. Default: none."
)
quality = click.option("--quality/--no-quality", default=True, help="Train and score. Default: on.")
speed = click.option("--speed/--no-speed", default=True, help="Time the variants. Default: on.")


def _together(*options: Command) -> Command:
    """One decorator that adds several options, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


selection = _together(
    click.option(
        "--tasks",
        default="",
        help="Tasks, as selectors separated by commas. Default: each variant's default task.",
    ),
    click.option("--backbone", default="", help="Backbone selector. Default: the task's own."),
    click.option(
        "--slot",
        default="",
        help="Slot of the backbone that holds the variant. Default: the first.",
    ),
    click.option("--preset", default="quick", show_default=True, help=PRESET_HELP),
    click.option("--minutes", default=0.0, help="Wall time to fill (minutes). 0: the preset's."),
    click.option(
        "--seeds", default=0, help="Number of seeds of every variant and task. 0: the preset's."
    ),
    click.option("--first-seed", default=0, show_default=True, help="First seed."),
    click.option(
        "--training",
        default="",
        help="Training options, for example adam[steps=200]. Default: the task's own.",
    ),
    click.option(
        "--baseline",
        default=PLAIN,
        show_default=True,
        help="Variant that all others are compared with.",
    ),
    click.option("--device", default="cpu", show_default=True, help="cpu or cuda."),
    click.option(
        "--dtype", default="float32", show_default=True, help="float32, float64 or bfloat16."
    ),
    implementation,
    jobs,
    plugins,
)
"""What to run; shared by run, plan, ablate and study."""

running = _together(
    click.option(
        "--spec",
        default="",
        metavar="FILE",
        help="spec.json of an earlier run. Run the same again.",
    ),
    out,
    data_directory,
    click.option(
        "--retry",
        multiple=True,
        metavar="STATUS",
        help="Run cells of this status again, for example failed.",
    ),
    click.option("--keep-models", is_flag=True, help="Save the trained weights."),
    inline,
    json_output,
)
"""Where results go and how work is done; shared by run, ablate and study."""
