"""Runs in which a level was chosen for each task and variant, so that what is decided is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.folder import RunFolder, read_folder
from results.row import Record, Row

UNIFORM = "no_attention"
OTHER = "scaled_dot"
NEW = "shaw_rpr[clip=16]"
METRIC = "token_accuracy"
AREA = "along_training_token_accuracy"
SEEDS = (0.0, 0.001, 0.003)

Levels = Mapping[str, float]
TIED: Levels = {BASE: 0.90, OTHER: 0.9005, UNIFORM: 0.30}
DECIDED: Levels = {BASE: 0.50, NEW: 0.90, UNIFORM: 0.30}
Scores = Mapping[str, Sequence[float | None]]
"""Variant -> score of each seed; None of one that diverged."""
NOTHING: Levels = {BASE: 0.300, OTHER: 0.3005, UNIFORM: 0.3002}


def of_seeds(
    path: Path,
    scores: Scores,
    more: Mapping[str, Scores] | None = None,
    *,
    curves: bool = False,
    **changes: object,
) -> RunFolder:
    """A run with the score of each seed.

    Args:
        path: Folder to write.
        scores: Of the task `copying`.
        more: Of other tasks, by name.
        curves: Whether validation along training is stored, which ends at the score.
        changes: What the catalog says instead.
    """
    tasks = {"copying": scores, **(more or {})}
    known = {**catalog(), **changes}
    known["variants"][UNIFORM]["control"] = "uniform_baseline"  # type: ignore[index]  # a plain dictionary
    one = next(iter(known["tasks"].values()))  # type: ignore[union-attr]  # a plain dictionary
    known["tasks"] = {name: {**one, "short": name, "primary": METRIC} for name in tasks}
    records = [
        _of_seed(name, variant, seed, value, curves=curves)
        for name, found in tasks.items()
        for variant, values in found.items()
        for seed, value in enumerate(values)
    ]
    return read_folder(write_run(path, records=records, catalog_data=known, tasks=[*tasks]))


def _of_seed(task: str, variant: str, seed: int, value: float | None, *, curves: bool) -> Record:
    cell = quality_cell(task, variant, seed)
    if value is None:
        return record(cell, "diverged", detail="loss is nan at step 37.")
    rows = [Row(metric=METRIC, value=value, split=split) for split in ("validation", "test")]
    along = {50.0: 0.2, 100.0 + seed: value} if curves else {}
    rows += [
        Row(metric=METRIC, value=height, split="validation", axis="step", x=x)
        for x, height in along.items()
    ]
    return record(cell, "ok", rows)


def written(
    path: Path,
    tasks: Mapping[str, Levels],
    *,
    steps: Mapping[str, float] | None = None,
    parameters: Mapping[str, float] | None = None,
    by_length: Mapping[str, Mapping[int, float]] | None = None,
    without: Mapping[str, float] | None = None,
    ended: Levels | None = None,
    positions: tuple[str, ...] = (),
    family: str = "",
    **changes: object,
) -> RunFolder:
    """A run with a level for each task and variant; seeds differ by a little, each its own way.

    With `ended`, levels are those along training, and `ended` has those after it.
    """
    ranked = AREA if ended else METRIC
    known = {**catalog(), **changes}
    for name, facts in known["variants"].items():  # type: ignore[attr-defined]  # a plain dictionary
        facts["family"] = "position" if name in positions else "score"
    plain = known["metrics"][METRIC]  # type: ignore[index]  # a plain dictionary
    along = {**plain, "title": f"{plain['title']} along training"}
    known["metrics"] |= {AREA: along}  # type: ignore[operator]  # a plain dictionary
    known["variants"][UNIFORM]["control"] = "uniform_baseline"  # type: ignore[index]  # a plain dictionary
    one = next(iter(known["tasks"].values()))  # type: ignore[union-attr]  # a plain dictionary
    known["tasks"] = {
        name: {
            **one,
            "short": name,
            "primary": ranked,
            "family": family or f"use of {name}",
            "generated": True,
        }
        for name in tasks
    }
    records = []
    for task, levels in tasks.items():
        for at, (variant, level) in enumerate(levels.items()):
            for seed in range(3):
                value = level + SEEDS[(seed + at) % 3]
                step = (steps or {}).get(variant, 10.0)
                rows = [
                    Row(metric=ranked, value=value, split="validation"),
                    Row(metric=ranked, value=value, split="test"),
                    Row(metric="train_step_time_ms", value=step + 0.01 * seed),
                ]
                if variant in (parameters or {}):
                    rows.append(Row(metric="parameters_count", value=parameters[variant]))
                rows += [
                    Row(metric=METRIC, value=far + SEEDS[(seed + at) % 3] / 9, split="test",
                        axis="length", x=float(length))
                    for length, far in (by_length or {}).get(variant, {}).items()
                ]  # fmt: skip
                if ended:
                    last = ended[variant] + value - level
                    rows.append(Row(metric=METRIC, value=last, split="test"))
                if task in (without or {}):
                    rows.append(
                        Row(metric=METRIC, value=without[task], split="test",
                            baseline="naive Bayes")
                    )  # fmt: skip
                records.append(record(quality_cell(task, variant, seed), "ok", rows))
    return read_folder(write_run(path, records=records, catalog_data=known, tasks=[*tasks]))
