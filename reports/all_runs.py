"""What to choose for each use of attention by several runs, side by side."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.choices import (
    ABOUT_P,
    COLUMNS,
    COST_HELP,
    RULE,
    SEEDS_HELP,
    about_scores,
    choice_row,
)
from reports.evidence import about_baseline, after_training, small_difference
from reports.folder import RunFolder
from reports.needs import DIAGNOSTICS, Need, needs
from reports.numbers import counted, p_text, plain
from reports.training_cost import ASSUMED

PAGE = "report.md"
"""The page of a run, in the folder of its name."""
ABOUT_COSTS = (
    f"Cost of a step: {COST_HELP} It is “about the same” where its interval lies within the noise "
    "of its run, a factor that its A/A control shows, or "
    f"{plain(ASSUMED)} where there is none, and “unclear” where a part of it does."
)
ABOUT_SEEDS = f"Seeds: {SEEDS_HELP}"
DIAGNOSTIC_TITLE, USE_TITLE = "Diagnostic tests", "Uses of attention"
SHORT_TITLE = "In short"
SHORT_COLUMNS = (
    Column(title="Use"),
    Column(title="Test"),
    Column(title="Variant"),
    Column(title="Score"),
    Column(title="Score of the baseline"),
    Column(title="Better than the baseline"),
    Column(title="Cost of a step"),
    Column(title="Run"),
)
NO_GAIN = "not shown"
"""Where the variant that is named is not significantly better than the baseline."""


def choices_in_short(
    runs: Mapping[str, RunFolder], equally_long: Collection[str] = ()
) -> tuple[str, TableBlock]:
    """One row for each use, of the first run that names a variant, and how many are what.

    What is significantly better than the baseline stands first, the baseline itself last.

    Args:
        runs: Runs by the names of their folders of pages, those that count first at the front.
        equally_long: Of these runs, which train equally long, that one is taken whose test has most
            variants, then the one with more seeds.
    """
    found: dict[str, list[tuple[Need, str]]] = {}
    for name, folder in runs.items():
        for need in needs(folder):
            if need.family != DIAGNOSTICS and not need.is_open:
                found.setdefault(need.title, []).append((need, name))
    first = {title: _first(these, equally_long) for title, these in found.items()}
    kinds = {title: _kind(need) for title, (need, _) in first.items()}
    order = sorted(first, key=lambda title: (KINDS.index(kinds[title]), title))
    counts = Counter(kinds.values())
    told = (
        "A variant is significantly better than the baseline in "
        f"{counts['better']} of {counted(len(first), 'use')}, in the run that is shown. In "
        f"{counts['baseline']} the baseline itself is named, and in {counts['other']} a variant "
        "of which that is not shown."
    )
    better = [need for title, (need, _) in first.items() if kinds[title] == "better"]
    told += _how_much_better(better)
    rows = tuple(_short_row(*first[title]) for title in order)
    return told, TableBlock(key="short", title=SHORT_TITLE, columns=SHORT_COLUMNS, rows=rows)


def _first(found: Sequence[tuple[Need, str]], equally_long: Collection[str]) -> tuple[Need, str]:
    """The first of the runs of a use, or the one among its equals that compares most variants."""
    if found[0][1] not in equally_long:
        return found[0]
    equals = [one for one in found if one[1] in equally_long]
    return max(equals, key=lambda one: (one[0].compared, one[0].evidence.most_seeds))


def _how_much_better(found: Sequence[Need]) -> str:
    """How many of some gains are too small to matter, or over a baseline that learned nothing."""
    small = sum(
        bool(small_difference(need.evidence, need.variant, need.evidence.baseline or ""))
        for need in found
    )
    unlearned = sum(need.baseline_is_uniform for need in found)
    told = ""
    if small:
        are = "is" if small == 1 else "are"
        told += f" Of these {counted(len(found), 'gain')} {small} {are} smaller than the margin."
    if unlearned:
        told += (
            f" In {unlearned} of these {counted(len(found), 'use')} the baseline is not "
            "significantly above uniform attention."
        )
    return told


KINDS = ("better", "other", "baseline")
"""What a choice is beside the baseline, in the order of the short table."""


def _kind(need: Need) -> str:
    if need.beats_baseline:
        return "better"
    return "baseline" if need.variant == need.evidence.baseline else "other"


def _short_row(need: Need, run: str) -> tuple[TableCell, ...]:
    """A use, its variant, the scores of both, and the run that says so."""
    use, test, variant, score, *_, cost = choice_row(need)
    link = TableCell(text=run, href=f"{run}/{PAGE}")
    return (use, test, variant, score, *_beside_baseline(need), cost, link)


def _beside_baseline(need: Need) -> tuple[TableCell, TableCell]:
    """Score of the baseline, and whether the variant is better, with the notes of the long row."""
    kind, comparison = _kind(need), need.evidence
    base = comparison.baseline or ""
    beside = comparison.short_score(base) if base and kind != "baseline" else NO_VALUE
    if kind == "baseline":
        return TableCell(text=beside), TableCell(text=NO_VALUE)
    lacks = tuple(about_baseline(need))
    if kind == "other":
        return TableCell(text=beside, marks=lacks), TableCell(text=NO_GAIN)
    notes = (
        *small_difference(comparison, need.variant, base),
        *after_training(comparison, need.variant, base),
    )
    return (
        TableCell(text=beside, marks=lacks),
        TableCell(text=f"yes, {p_text(need.p_baseline)}", marks=notes),
    )


def choices_of_runs(runs: Mapping[str, RunFolder]) -> list[TableBlock]:
    """A row for each use and each run that can say something of it: uses, then diagnostic tests.

    Args:
        runs: Runs by the names of their folders of pages, in the order of the rows of a use.
    """
    found = [
        (need, name) for name, folder in runs.items() for need in needs(folder) if not need.is_open
    ]
    tables = []
    for diagnostic, title in ((False, USE_TITLE), (True, DIAGNOSTIC_TITLE)):
        mine = [one for one in found if (one[0].family == DIAGNOSTICS) is diagnostic]
        # sorting keeps the order of runs
        by_use = groupby(sorted(mine, key=lambda one: one[0].title), key=lambda one: one[0].title)
        rows = [row for _, group in by_use for row in _rows(list(group))]
        about = about_scores([need for need, _ in mine])
        tables.append(
            TableBlock(
                key=title.lower().replace(" ", "-"),
                title=title,
                columns=(COLUMNS[0], Column(title="Run"), *COLUMNS[1:]),
                rows=tuple(rows),
                notes=about if diagnostic else (RULE, ABOUT_P, *about, ABOUT_COSTS, ABOUT_SEEDS),
            )
        )
    return tables


def _rows(found: list[tuple[Need, str]]) -> list[tuple[TableCell, ...]]:
    """The rows of one use, which the first of them names."""
    rows = []
    for number, (need, run) in enumerate(found):
        use, *rest = choice_row(need)
        link = TableCell(text=run, href=f"{run}/{PAGE}")
        rows.append((use if number == 0 else TableCell(text=""), link, *rest))
    return rows
