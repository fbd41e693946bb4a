"""What a network gains from all that it is given, against the best that is given less.

Zoph & Knight, 2016, compare several sources with the best single one, and a shuffled source tells
more knowledge from more parameters. Both are other options of one task, hence other comparisons;
here their scores meet, seed by seed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.api.selector import parse
from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.numbers import Seen, with_interval
from reports.ranked_table.comparison import Comparison
from results.statistics import paired_difference, t_interval

NOTE = (
    "Some lines are given less input. The reference is the one with the best validation mean among "
    "these in the same network. Differences are paired by seed, with 95% t intervals. They are not "
    "corrected for their number."
)


class AblatedLine(NamedTuple):
    """Scores of a variant in one of the comparisons."""

    comparison: Comparison
    variant: str
    network: str

    @property
    def by_seed(self) -> dict[int, float]:
        """Test score of each seed."""
        return self.comparison.scores[self.variant]

    @property
    def whole(self) -> bool:
        """Whether nothing is ablated."""
        return self.comparison.task == self.comparison.catalog.whole(self.comparison.task)


def ablated_tables(found: Sequence[Comparison]) -> Iterator[TableBlock]:
    """A table for each task of which a run has comparisons with something ablated."""
    wholes = dict.fromkeys(one.catalog.whole(one.task) for one in found)
    for whole in wholes:
        mine = [one for one in found if whole and one.catalog.whole(one.task) == whole]
        lines = [
            AblatedLine(comparison, variant, _network(comparison, variant))
            for comparison in mine
            for variant in comparison.scores
            if variant not in comparison.red
        ]
        references = {line.network: _reference(lines, line.network) for line in lines}
        kept = [line for line in lines if references[line.network] is not None]
        if any(line.whole for line in kept):
            yield _table(whole, kept, references)


def _network(comparison: Comparison, variant: str) -> str:
    return parse(comparison.cells.setting(variant, "backbone")).name


def _reference(lines: Sequence[AblatedLine], network: str) -> AblatedLine | None:
    """The best by validation of those that are given less."""
    less = [line for line in lines if line.network == network and not line.whole]
    side = 1.0 if less and less[0].comparison.better == "lower" else -1.0

    def order(line: AblatedLine) -> tuple[float, str, str]:
        comparison = line.comparison
        values = comparison.stored.final(comparison.metric, "validation")
        mean = t_interval([*values.get(line.variant, line.by_seed).values()]).estimate
        return side * mean, comparison.task, line.variant

    return min(less, key=order, default=None)


def _table(
    whole: str, lines: Sequence[AblatedLine], references: dict[str, AblatedLine | None]
) -> TableBlock:
    first = lines[0].comparison
    known, metric = first.catalog, first.ranked_by
    side = 1.0 if first.better == "lower" else -1.0

    def order(line: AblatedLine) -> tuple[str, float]:
        return line.network, side * line.comparison.means[line.variant].estimate

    return TableBlock(
        key=f"ablated-{first.key.removeprefix('comparison-')}",
        title=f"All that is given against the best of less: {known.task_label(whole)}",
        columns=(
            Column(title="Network"),
            Column(title="Given"),
            Column(title="Variant"),
            Column(title=metric.arrow, unit=metric.unit, numeric=True, better=metric.better),
            Column(title="To the best of less", unit=metric.unit, numeric=True),
        ),
        rows=tuple(_row(line, references[line.network]) for line in sorted(lines, key=order)),
        notes=(NOTE,),
    )


def _row(line: AblatedLine, reference: AblatedLine | None) -> tuple[TableCell, ...]:
    mean = line.comparison.means[line.variant].estimate
    return (
        TableCell(text=line.network),
        TableCell(text=_given(line.comparison)),
        TableCell(text=line.comparison.catalog.label(line.variant)),
        TableCell(text=line.comparison.score_text(line.variant), sort=mean),
        _difference(line, reference),
    )


def _given(comparison: Comparison) -> str:
    """Options that remove an input, `everything` where none does."""
    here = parse(comparison.task).options
    there = parse(comparison.catalog.whole(comparison.task)).options
    changed = [f"{key}={_text(value)}" for key, value in here.items() if there.get(key) != value]
    return ", ".join(changed) or "everything"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(one.show() for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _difference(line: AblatedLine, reference: AblatedLine | None) -> TableCell:
    if reference is None:
        return TableCell(text=NO_VALUE, sort="")
    if line == reference:
        return TableCell(text="reference", sort=0.0)
    seeds = sorted(line.by_seed.keys() & reference.by_seed.keys())
    pairs = [(line.by_seed[seed], reference.by_seed[seed]) for seed in seeds]
    found = paired_difference([mine for mine, _ in pairs], [other for _, other in pairs])
    limits = line.comparison.ranked_by.limits
    seen = Seen.of(mine - other for mine, other in pairs)
    text = with_interval(
        found.estimate, found.low, found.high, signed=True, limits=limits, seen=seen
    )
    return TableCell(text=text, sort=found.estimate if seeds else "")
