"""What the demo prints: attention weights beside the gold alignment, and a table."""

from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import Any

from tabulate import tabulate

from reports.folder import RunFolder, StoredOutcome

MOST_SYMBOLS = 7
"""Longest source of the string that is shown (symbols, its end included)."""
INTRODUCTION = """\
Attention weights for one test string ({source} -> {target}).
A row is an output symbol, a column a source symbol. Weights are in tenths: 9 is 0.85 or more,
a dot is less than 0.05. `gold` is the alignment that the rule of the task gives."""


def demo_parts(folder: RunFolder, cells: Collection[str]) -> list[str]:
    """Weights of every mechanism that has some, and the table of scores and costs.

    Args:
        folder: The run.
        cells: Ids of the cells of the demo; the folder may hold others.
    """
    trained = [one for one in folder.of_kind("quality") if one.record.id in cells]
    return [*_weights(folder, trained), _table(folder, trained)]


def _weights(folder: RunFolder, trained: Sequence[StoredOutcome]) -> list[str]:
    """Grids of one string side by side; nothing where no mechanism left weights."""
    examples = {
        name: example
        for name, outcome in _first_seeds(folder, trained).items()
        if (example := _shortest(folder, outcome)) is not None
    }
    if not examples:
        return []
    shown = next(iter(examples.values()))
    source, target = shown["source"], shown["query"]
    grids = {"gold": shown["gold"]}
    grids |= {name: one["weights"] for name, one in examples.items() if one["query"] == target}
    introduction = INTRODUCTION.format(source=" ".join(source), target=" ".join(target))
    return [introduction, "\n".join(_side_by_side(grids, source, target))]


def _first_seeds(folder: RunFolder, trained: Sequence[StoredOutcome]) -> dict[str, StoredOutcome]:
    """The outcome of the first seed of every variant, by its name in the report."""
    found: dict[str, StoredOutcome] = {}
    for outcome in sorted(trained, key=lambda one: one.cell.seed):
        found.setdefault(folder.catalog.label(outcome.cell.variant), outcome)
    return found


def _shortest(folder: RunFolder, outcome: StoredOutcome) -> Mapping[str, Any] | None:
    """The shortest example with weights and gold alignment that fits; None if there is none."""
    stored = folder.artifact(outcome)
    fitting = [
        example
        for example in stored.get("attention") or ()
        if example.get("gold") and len(example["source"]) <= MOST_SYMBOLS
    ]
    return min(fitting, key=lambda example: len(example["query"]), default=None)


def _side_by_side(
    grids: Mapping[str, Sequence[Sequence[float]]], source: Sequence[str], target: Sequence[str]
) -> list[str]:
    """One block of columns a grid, one line an output symbol."""
    short = {"</s>": "$"}
    columns = " ".join(short.get(symbol, symbol) for symbol in source)
    wide = max(len(columns), *(len(name) for name in grids)) + 2
    lines = ["   " + "".join(name.ljust(wide) for name in grids).rstrip()]
    lines.append("   " + "".join(columns.ljust(wide) for _ in grids).rstrip())
    for place, symbol in enumerate(target):
        rows = (" ".join(map(_digit, grid[place])).ljust(wide) for grid in grids.values())
        lines.append(f"{short.get(symbol, symbol):<3}{''.join(rows)}".rstrip())
    return lines


def _digit(weight: float) -> str:
    """A weight in tenths, in one character.

    >>> [_digit(weight) for weight in (0.0, 0.04, 0.3, 0.97)]
    ['.', '.', '3', '9']
    """
    tenths = min(9, round(10 * weight))
    return str(tenths) if tenths else "."


def _table(folder: RunFolder, trained: Sequence[StoredOutcome]) -> str:
    """A line for every mechanism, best first: its score on test strings and what it costs."""
    if not trained:
        return "No cell has finished, so there is nothing to compare."
    primary = str(folder.catalog.tasks[trained[0].cell.task].primary)
    found: dict[str, list[StoredOutcome]] = {}
    for outcome in trained:
        found.setdefault(folder.catalog.label(outcome.cell.variant), []).append(outcome)
    scores = {name: _values(outcomes, primary, "test") for name, outcomes in found.items()}
    rows = [
        [
            name,
            _range(scores[name], 2),
            _range(_values(found[name], "train_step_time_ms"), 0),
            _range(_values(found[name], "parameters_count")[:1], 0),
        ]
        for name in sorted(found, key=lambda name: -mean(scores[name] or [0.0]))
    ]
    title = folder.catalog.metric(primary).title
    heads = ["mechanism", title, "training step (CPU ms)", "parameters"]
    seeds = max(len(values) for values in scores.values())
    table = tabulate(
        rows, heads, tablefmt="simple", disable_numparse=True, colalign=("left", *["right"] * 3)
    )
    if seeds < 2:
        return f"{table}\nOne seed on test strings."
    return f"{table}\nMean of {seeds} seeds on test strings, and in brackets min–max."


def _values(outcomes: Sequence[StoredOutcome], metric: str, split: str = "") -> list[float]:
    """A variant's own value of a metric in each outcome that has it."""
    found = [outcome.record.value(metric, split) for outcome in outcomes]
    return [value for value in found if value is not None]


def _range(values: Sequence[float], digits: int) -> str:
    """Mean, and min–max where there are several values."""
    if not values:
        return "–"
    text = f"{mean(values):,.{digits}f}"
    return f"{text} ({min(values):.{digits}f}–{max(values):.{digits}f})" if values[1:] else text
