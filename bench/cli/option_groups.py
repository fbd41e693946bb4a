"""Options that several commands share, each declared once."""

import os
from collections.abc import Callable, Collection
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from bench.api.axes import PLAIN
from bench.api.command import EXAMPLES
from bench.api.errors import MOST_QUOTED, InvalidConfig, UnknownName
from bench.api.plain_text import shortened
from bench.running.presets import PRESETS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from bench.cli.run_options import RunOptions

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")
F = TypeVar("F", bound=Callable[..., object])

PRESET_HELP = f"Size of the run: {', '.join(PRESETS)}. `bench list presets` describes each."

ENDINGS = ("red", "failed", "refused", "worse")
"""What may end a command with exit code 1."""

JOBS_LEFT_OUT = "bench.jobs_left_out"
"""Key of what a command remembers: whether nobody said how many processes there are at once."""
MOST_JOBS = 16
"""Processes for each core, at most: more of them only wait for each other, and fill the memory."""

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


def _at_once(context: click.Context, option: click.Parameter, jobs: int) -> int:
    """Processes at once; 0 stands for one a core, and on a GPU, which they would share, for one."""
    if jobs < 0:
        raise InvalidConfig(f"jobs must be >= 0, and 0 is one a core; got {jobs}.")
    cores = os.cpu_count() or 1
    if jobs > MOST_JOBS * cores:
        of_all = "the one core" if cores == 1 else f"each of {cores} cores"
        raise InvalidConfig(
            f"--jobs {jobs} is more than {MOST_JOBS} for {of_all}; give fewer, or leave it out."
        )
    context.meta[JOBS_LEFT_OUT] = jobs == 0
    return jobs or (1 if context.params.get("device") == "cuda" else cores)


def jobs_on(devices: Collection[str], jobs: int) -> int:
    """Processes at once once it is known where cells run: one on a GPU, unless more were asked for.

    A spec, a label or an earlier run may name the device, which nobody typed then.

    Args:
        devices: Of all cells.
        jobs: As the command line has it.
    """
    context = click.get_current_context(silent=True)
    left_out = context is not None and context.meta.get(JOBS_LEFT_OUT, False)
    return 1 if left_out and "cuda" in devices else jobs


def _endings(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    """What ends a command with exit code 1."""
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in found:
        if name not in (*ENDINGS, "none"):
            raise UnknownName.among("ending", name, (*ENDINGS, "none"))
    if "none" in found and len(found) > 1:
        raise InvalidConfig(
            f"--fail-on {shortened(text, MOST_QUOTED)}: none stands alone; leave it out, or give "
            "nothing else."
        )
    return () if found == ("none",) else found


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator that adds several options, in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


jobs = click.option(
    "--jobs",
    default=0,
    callback=_at_once,
    help="Worker processes at a time. 0: one per core; with --device cuda one.",
)
retry = click.option(
    "--retry",
    multiple=True,
    metavar="STATUS",
    help="Run cells of this status again, for example failed.",
)
inline = click.option("--inline", is_flag=True, help="Run in this process, for debuggers.")
out = click.option(
    "--out",
    default="",
    metavar="DIR",
    help="Run folder; results join those that are there. Default: runs/PRESET for `run`, and "
    "runs/cells-PRESET for --cell; other commands have one below runs/ that is named after them.",
)
# read before the others, because the usual number of jobs depends on it
device = click.option(
    "--device", default="cpu", show_default=True, is_eager=True, help="cpu or cuda."
)
dtype = click.option(
    "--dtype", default="float32", show_default=True, help="float32, float64 or bfloat16."
)
implementation = click.option(
    "--impl",
    default="auto",
    show_default=True,
    help="Code of the mechanism: auto (the best there is), eager (plain torch), sdpa (PyTorch's "
    "fused attention, timed only), or compiled (eager behind torch.compile, timed only).",
)
probes = click.option(
    "--probes",
    default="",
    help="Probes to run on every trained model, or 'all'. They look at the first "
    f"{EXAMPLES} test examples, which are the shortest. Default: none.",
)
until = _together(
    click.option(
        "--until",
        default="",
        metavar="decided",
        help="Add seeds where a primary hypothesis is undecided, look by look, until it is "
        "decided or the minutes are over. Without --tasks or --seeds all tasks begin with the "
        "seeds of the one that has the fewest. Default: no seeds are added.",
    ),
    click.option(
        "--most-seeds",
        default=21,
        show_default=True,
        help="With --until: no variant gets more seeds than this.",
    ),
)
quality = click.option("--quality/--no-quality", default=True, help="Train and score. Default: on.")
speed = click.option("--speed/--no-speed", default=True, help="Time the variants. Default: on.")


shapes = click.option(
    "--shape",
    multiple=True,
    metavar="SHAPE",
    help="Shape to time, several times if wanted: rows, heads, lengths and width of a head as "
    "B=4,H=16,L=1024+4096,E=64, or small, model, long, serving or serving_long; slot,B=1,... times "
    "the heads, too. Defaults of single letters: B=2,H=2,L=256,E=32. Default: the lengths of the "
    "preset.",
)


def run_options(
    command: "Callable[Concatenate[RunOptions, P], T]",
) -> Callable[..., T]:
    """Fill `RunOptions` with what was typed; options of this command alone come after it."""

    @wraps(command)
    def fill(*args: P.args, **typed: P.kwargs) -> T:
        from bench.cli.run_options import RunOptions

        return command(filled(RunOptions, typed), *args, **typed)

    return fill


def without_training(command: Callable[P, T]) -> Callable[P, T]:
    """For a command that trains nothing: it takes code that is timed alone, too."""

    @wraps(command)
    def fill(*args: P.args, **typed: P.kwargs) -> T:
        return command(*args, **{**typed, "quality": False})  # type: ignore[arg-type]

    return fill


def filled(kind: type[D], typed: dict[str, object]) -> D:
    """A dataclass of options with what was typed for its fields, which is taken out."""
    return kind(**{one.name: typed.pop(one.name) for one in fields(kind) if one.name in typed})


_place = _together(
    click.option(
        "--backbone",
        default="",
        help="Backbone selector. Default: what the comparison of a preset names or, without "
        "--tasks, the variant's default task; else the task's own.",
    ),
    click.option(
        "--slot",
        default="",
        help="Slot of the backbone that holds the variant. Default: what the comparison of a "
        "preset names or, without --tasks, the variant's default task; else the first.",
    ),
    click.option("--preset", default="quick", show_default=True, help=PRESET_HELP),
)
"""Where a variant stands, and how large everything is."""

_how = _together(
    click.option("--first-seed", default=0, show_default=True, help="First seed."),
    click.option(
        "--training",
        default="",
        help="Training options, for example adam[steps=200]; `bench show adam` explains them. "
        "Default: the task's own.",
    ),
    device,
    dtype,
    implementation,
    jobs,
    plugins,
)
"""How a variant is trained, and with which code."""

selection = _together(
    click.option(
        "--tasks",
        default="",
        help="Tasks, as selectors separated by commas. Default: each variant's default task.",
    ),
    _place,
    click.option(
        "--minutes",
        default=0.0,
        help="Wall time to fill (minutes). 0: the preset's, or no limit with --tasks or --seeds.",
    ),
    click.option(
        "--seeds",
        default=0,
        help="Number of seeds of every variant and task. 0: the preset's, of which pipeline "
        "checks and some tasks have the first ones, unless --tasks names them.",
    ),
    _how,
)
"""What to run; shared by run, plan and ablate."""

one_task = _together(
    click.option("--tasks", default="", help="The one task to tune on, as a selector. Needed."),
    _place,
    _how,
)
"""What a study tunes; its trials say how long it takes, and its winners are compared."""

what_to_change = _together(
    click.option("--base", default="", help="Variant to change, as a selector."),
    click.option("--axis", default="", help="Axis to change: score, position, normalizer ..."),
)
"""What an ablation changes; shared by ablate and plan."""

baseline = click.option(
    "--baseline",
    default=PLAIN,
    show_default=True,
    help="Variant that all others are compared with.",
)
"""Shared by run and plan; an ablation compares with its base."""

reuse = click.option(
    "--reuse",
    default="",
    metavar="RUN",
    help="Take finished cells from this run folder or published pack. Those whose code or data "
    "have changed since are run again.",
)
"""Shared by run and ablate."""

running = _together(
    click.option(
        "--spec",
        default="",
        metavar="FILE",
        help="spec.json of an earlier run. Run the same again; of several commands that went into "
        "one folder, the last. --plugin beside it says where a plug-in of the spec lies now.",
    ),
    click.option(
        "--trust",
        is_flag=True,
        help="Load the plug-in files and open the study storage that the spec names.",
    ),
    out,
    data_directory,
    retry,
    click.option(
        "--keep-old",
        is_flag=True,
        help="Keep results whose code or data have changed since, marked and not ranked, instead "
        "of running their cells again.",
    ),
    click.option(
        "--fail-on",
        default="red,failed",
        show_default=True,
        callback=_endings,
        help="What ends the command with exit code 1, separated by commas: red (a certificate), "
        "failed, refused, worse (significantly, than the baseline), or none. A run with refused "
        "cells and no value always does.",
    ),
    click.option("--keep-models", is_flag=True, help="Save the trained weights."),
    inline,
    json_output,
)
"""Where results go and how work is done; shared by run, ablate and study."""
