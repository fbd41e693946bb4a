"""Which variant to choose for each use of attention, by rule from the statistics of a run."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from reports.folder import RunFolder
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.headline import separating

LEVEL = 0.05
"""A p below it is called significant."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """A use of attention with its comparisons, and the variant to choose for it."""

    title: str
    comparisons: tuple[Comparison, ...]

    @cached_property
    def candidates(self) -> dict[str, list[Comparison]]:
        """Each variant that is tied with the best, with the comparisons where it is."""
        found: dict[str, list[Comparison]] = {}
        for comparison in self.comparisons:
            for name in tied_with_best(comparison):
                found.setdefault(name, []).append(comparison)
        return found

    @cached_property
    def variant(self) -> str:
        """The variant to choose: better than the baseline on most tasks, tied on most, cheapest.

        Empty where no contender has learned anything.
        """

        def order(name: str) -> tuple[int, int, float, bool, str]:
            here = self.candidates[name]
            better = sum(beats(comparison, name, comparison.baseline) for comparison in here)
            cost = relative_cost(here, name)
            known = cost if math.isfinite(cost) else math.inf
            return -better, -len(here), known, name != here[0].baseline, name

        return min(self.candidates, key=order, default="")

    @cached_property
    def evidence(self) -> Comparison:
        """The comparison that says most for the choice."""

        def order(comparison: Comparison) -> tuple[float, float]:
            return tuple(  # type: ignore[return-value]  # a pair, because the references are two
                p if math.isfinite(p) else 2.0
                for p in (
                    _p_better(comparison, self.variant, other)
                    for other in (comparison.baseline, comparison.uniform_baseline)
                )
            )

        return min(self.candidates.get(self.variant) or self.comparisons, key=order)

    @property
    def beats_baseline(self) -> bool:
        """Whether the choice is significantly better than the baseline."""
        return beats(self.evidence, self.variant, self.evidence.baseline)

    @property
    def beats_uniform(self) -> bool:
        """Whether the choice is significantly better than uniform attention."""
        return beats(self.evidence, self.variant, self.evidence.uniform_baseline)

    @property
    def p_baseline(self) -> float:
        """Adjusted p of the choice being better than the baseline; NaN where it is not."""
        return _p_better(self.evidence, self.variant, self.evidence.baseline)


def needs(folder: RunFolder) -> list[Need]:
    """Uses of attention of a run whose comparisons can decide something, in order of their names.

    A task of no family stands for itself. Where the whole test is solved, its hardest part or the
    steps to a threshold decide. Input ablations, pipeline checks and comparisons of one variant,
    or of one seed each, decide nothing.
    """
    groups: dict[str, list[Comparison]] = {}
    for comparison in folder.comparisons:
        if decides(comparison):
            known = comparison.catalog
            title = known.family(comparison.task) or known.task_label(comparison.task)
            groups.setdefault(title, []).append(separating(comparison))
    return [Need(title=title, comparisons=tuple(groups[title])) for title in sorted(groups)]


def decides(comparison: Comparison) -> bool:
    """Whether a comparison can say which variant to choose; a pipeline check cannot."""
    whole = comparison.catalog.whole(comparison.task)
    fair = [name for name in comparison.contenders if name in comparison.compared]
    if whole not in ("", comparison.task) or comparison.catalog.pipeline_check(comparison.task):
        return False
    return bool(comparison.ranking) and comparison.most_seeds > 1 and len(fair) > 1


def tied_with_best(comparison: Comparison) -> list[str]:
    """Contenders of the first rank; where some are better than uniform attention, these alone."""
    first = [line.variant for line in comparison.leading if line.variant in comparison.contenders]
    known = [name for name in first if beats(comparison, name, comparison.uniform_baseline)]
    return known or first


def beats(comparison: Comparison, variant: str, other: str | None) -> bool:
    """Whether a variant is significantly better than another on the test."""
    return _p_better(comparison, variant, other) < LEVEL


def _p_better(comparison: Comparison, variant: str, other: str | None) -> float:
    known = comparison.compared
    if comparison.plain and variant in known and other not in known:
        return _p_better(comparison.plain, variant, other)
    if other is None or other not in known or variant not in known:
        return math.nan
    return comparison.p_better(variant, other)


def relative_cost(found: Iterable[Comparison], variant: str) -> float:
    """Training step of a variant over that of the baseline, as a geometric mean; NaN if unknown."""
    logs = []
    for comparison in found:
        mine, base = (
            comparison.cells.trained(name, "train_step_time_ms").estimate
            for name in (variant, comparison.catalog.baseline)
        )
        if mine > 0 and base > 0:
            logs.append(math.log(mine / base))
    return math.exp(fmean(logs)) if logs else math.nan


def often_tied(found: Sequence[Need]) -> list[tuple[str, int]]:
    """Variants that are tied with the best in at least half of some needs, most frequent first.

    Of two that are tied equally often the cheaper is first.
    """
    counts = Counter(name for need in found for name in need.candidates)
    often = [(name, count) for name, count in counts.items() if 2 * count >= len(found)]

    def order(item: tuple[str, int]) -> tuple[int, float, str]:
        name, count = item
        cost = overall_cost(found, name)
        return -count, cost if math.isfinite(cost) else math.inf, name

    return sorted(often, key=order)


def overall_cost(found: Sequence[Need], variant: str) -> float:
    """Relative training step of a variant over all comparisons of some needs."""
    return relative_cost((one for need in found for one in need.comparisons), variant)
