"""What a plan does not hold, why, and the command that runs it."""

from dataclasses import dataclass, fields, replace

from bench.api.cell import Cell
from bench.api.command import run_command
from bench.running.request import Request

CHOOSING = frozenset(
    ("variants", "tasks", "preset", "minutes", "jobs", "speed", "quality", "calibrated")
)
"""Options that choose what is run; the others say how."""
FILES = frozenset(("plugin", "data_dir"))
"""Options that every command names."""
NARROWING = tuple(
    one.name for one in fields(Request) if one.name not in CHOOSING and one.name not in FILES
)


@dataclass(frozen=True)
class LeftOut:
    """What the plan does not hold, why, and the command that runs it."""

    label: str
    reason: str
    command: str
    """Empty where no command can."""


def without_data(request: Request, task: str, reason: str) -> LeftOut:
    """A comparison whose data are not there."""
    chosen = [] if request.variants == Request.variants else ["--variants", request.variants]
    words = ["--preset", request.preset, "--tasks", task, *chosen, *_typed(request)]
    return LeftOut(f"training on {task}", reason, _command(request, *words))


def without_default_task(request: Request, variant: str, task: str) -> LeftOut:
    """A variant that no task shows; the command trains it on the task given."""
    return LeftOut(
        f"training of {variant}",
        "no task here shows what it is for yet; it is certified and timed",
        _command(request, "--variants", variant, "--tasks", task, *_sized(request)),
    )


def without_comparers(request: Request, variant: str, task: str) -> LeftOut:
    """A variant that no task of a preset compares; the command trains it beside the controls."""
    return LeftOut(
        f"training of {variant}",
        f"no task of preset {request.preset} compares it; --tasks names one to train it on",
        _command(request, "--variants", variant, "--tasks", task, *_sized(request)),
    )


def without_timing(request: Request, variant: str, *, stacked: bool) -> LeftOut:
    """A variant that is not timed at the shapes that were asked for.

    Args:
        request: What was asked for.
        variant: As it was asked for.
        stacked: Whether its layers read each other, so that a stack of them can be timed.
    """
    if stacked:
        return LeftOut(
            f"speed of {variant}",
            "its layers read each other, so they are timed together, with their heads; "
            "--shape slot asks for that",
            _timing(replace(request, shape=("slot",)), variant),
        )
    untrained = "" if request.quality else "; leave out --no-quality to train it"
    return LeftOut(
        f"speed of {variant}",
        "it has no attention that could be timed by itself, without the network around it"
        f"{untrained}",
        "",
    )


def no_time_to_train(request: Request, cell: Cell) -> LeftOut:
    """A cell for which the budget is too small."""
    command = _command(request, "--cell", cell.label, *_preset(request))
    return LeftOut(cell.label, _no_room(request), command)


def not_matched(request: Request, cell: Cell, reason: str) -> LeftOut:
    """A cell whose network cannot have the size of the baseline's; the command runs it as it is."""
    command = _command(request, "--cell", cell.label, *_preset(request))
    return LeftOut(cell.label, f"--match {request.match}: {reason}", command)


def no_time_to_time(request: Request, variant: str) -> LeftOut:
    """A variant whose timing the budget is too small for."""
    return LeftOut(f"speed of {variant}", _no_room(request), _timing(request, variant))


def _timing(request: Request, variant: str) -> str:
    """The command that times a variant and trains nothing."""
    # what says how to train would be refused
    timed = replace(request, seeds=0, backbone="", slot="", training="", match="")
    return _command(request, "--variants", variant, "--no-quality", *_sized(timed))


def _no_room(request: Request) -> str:
    minutes = request.budget_s / 60
    return f"does not fit {minutes:g} minutes of preset {request.preset}; --minutes gives more"


def _command(request: Request, *words: str) -> str:
    return run_command(*words, plugins=request.plugin, data_dir=request.data_dir)


def _typed(request: Request) -> list[str]:
    """Options of a request that are not the usual ones, for a command that asks the same of less.

    Those that choose what is run (variants, tasks, the preset and its minutes) are not among them.
    """
    changed = {
        name: value
        for name in NARROWING
        if (value := getattr(request, name)) != getattr(Request, name)
    }
    return [
        word
        for name, value in changed.items()
        for one in (value if isinstance(value, tuple) else (value,))
        for word in (f"--{name.replace('_', '-')}", str(one))
    ]


def _sized(request: Request) -> list[str]:
    """The preset where it is not the usual one, and the other options that were typed."""
    return [*_preset(request), *_typed(request)]


def _preset(request: Request) -> list[str]:
    """The preset where it is not the usual one."""
    return [] if request.preset == Request.preset else ["--preset", request.preset]
