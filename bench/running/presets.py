"""How big a run is: seeds, sizes, speed lengths and time.

Tasks say whether the variants of a preset share them, and variants of which presets they are.
"""

from dataclasses import dataclass

from bench.api.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One size of run; the sizes of each task under it live with the task."""

    name: str
    summary: str
    """One line for `--help`."""
    seeds: int
    """Paired seeds of quality cells. Pipeline checks have the first two of them, and a size of a
    task may have fewer (`TaskPreset.seeds`), unless the task was asked for by its name."""
    budget_s: float
    """Wall time on two cores that the planner fills (s); 0 for no limit."""
    ranks: bool
    """Whether the report may rank anything."""
    lengths: tuple[int, ...]
    """Sequence lengths of the speed cells (tokens)."""
    rounds: str
    """Timing protocol."""
    shape: str = "B=2,H=2,E=32"
    """Rows, heads and width of what is timed, in the letters of `--shape`."""
    long_lengths: tuple[int, ...] = ()
    """Further lengths, for mechanisms that declare less than quadratic time, and the baseline."""
    speed_s: float
    """Wall time of one variant's speed cells, all lengths (s)."""
    sizes: str = ""
    """Preset whose sizes of tasks are used; empty for its own."""
    comparisons: bool = False
    """Whether each task runs the comparison that it proposes, in the place of default tasks."""


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="smoke",
            summary="proves the plumbing in seconds a cell; ranks nothing",
            seeds=1,
            budget_s=0.0,
            ranks=False,
            lengths=(32, 64, 128),
            rounds="rounds[count=3,visit_ms=2,budget_ms=30,least=2]",
            speed_s=0.5,
        ),
        Preset(
            name="demo",
            summary="two seeds at the sizes of quick, no timing; `bench demo` runs a minute of it",
            seeds=2,
            budget_s=0.0,
            ranks=True,
            lengths=(),
            rounds="rounds",
            speed_s=0.0,
            sizes="quick",
        ),
        Preset(
            name="quick",
            summary="45 minutes on two cores: default tasks, one shared task, speed",
            seeds=4,
            budget_s=3000.0,
            ranks=True,
            lengths=(256, 1024, 4096),
            rounds="rounds[samples=1,budget_ms=50,most_mb=192,most_s=0.15]",
            speed_s=1.6,
            shape="B=1,H=1,E=64",
        ),
        Preset(
            name="families",
            summary="every use of attention, on real data where possible: each task's comparison",
            seeds=3,
            budget_s=12600.0,
            ranks=True,
            lengths=(),
            rounds="rounds",
            speed_s=0.0,
            sizes="quick",
            comparisons=True,
        ),
        Preset(
            name="modern",
            summary="1 h 45 min on two cores: what the mechanisms since 2019 claim, at sizes where "
            "they differ",
            seeds=5,
            budget_s=7200.0,
            ranks=True,
            lengths=(),
            rounds="rounds",
            speed_s=0.0,
            comparisons=True,
        ),
        Preset(
            name="flagship",
            summary="days on a CPU: few comparisons, trained until nothing gets better",
            seeds=5,
            budget_s=0.0,
            ranks=True,
            lengths=(),
            rounds="rounds",
            speed_s=0.0,
            comparisons=True,
        ),
        Preset(
            name="standard",
            summary="hours on a CPU: larger tasks, real data, more lengths",
            seeds=5,
            budget_s=0.0,
            ranks=True,
            lengths=(256, 512, 1024, 2048, 4096),
            rounds="rounds[count=20,visit_ms=50,budget_ms=2000,most_mb=2000,most_s=2]",
            speed_s=90.0,
            shape="B=1,H=8,E=64",
            long_lengths=(8192, 16384),
        ),
    )
}


def find_preset(name: str) -> Preset:
    """Look a preset up by name.

    Raises:
        UnknownName: There is none of this name.
    """
    if name not in PRESETS:
        raise UnknownName.among("preset", name, PRESETS)
    return PRESETS[name]


def sizes_of(preset: str) -> str:
    """Name of the preset that has the sizes of tasks, which may be another one.

    Raises:
        UnknownName: There is no such preset.
    """
    return find_preset(preset).sizes or preset
