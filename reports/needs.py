"""Which variant to choose for each use of attention, by rule from the statistics of a run."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from reports.folder import RunFolder
from reports.outdone import outdone
from reports.positions import has_positions
from reports.ranked_table.comparison import LEVEL, Comparison
from reports.ranked_table.headline import at_the_end, separating
from reports.training_cost import CostNoise, in_order, noise_of, relative_cost
from results.statistics import Interval

DIAGNOSTICS = "diagnostics"
"""Family of the tasks that ask about one ability each, and stand for no use."""


class Standing(NamedTuple):
    """What the rules say of one variant, the first rule first; less is better."""

    worse_on: int
    """Tests on which it is significantly better than the baseline, times -1."""
    behind: bool
    """Whether some seed is not above the best non-neural baseline."""
    tied_less: int
    """Tests on which it is tied with the best, times -1."""
    among: int
    """Contenders of the largest of these tests, times -1."""
    outdone: bool
    """Whether another is at least as good in every seed and better in one (`outdone`)."""
    cost: float
    other: bool
    """Whether it is not the baseline."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """A use of attention with its comparisons, and the variant to choose for it."""

    title: str
    comparisons: tuple[Comparison, ...]
    noise: CostNoise
    """From where on costs of the run differ."""

    @property
    def family(self) -> str:
        """The family of its tasks, empty for a task of none."""
        one = self.comparisons[0]
        return one.catalog.family(one.task)

    @cached_property
    def candidates(self) -> dict[str, list[Comparison]]:
        """Each variant that is tied with the best, with the comparisons where it is.

        Comparisons in which nothing is above uniform attention count only if there is no other.
        """
        telling = [one for one in self.comparisons if above_uniform(one)]
        found: dict[str, list[Comparison]] = {}
        for comparison in telling or self.comparisons:
            for name in tied_with_best(comparison):
                found.setdefault(name, []).append(comparison)
        return found

    @cached_property
    def variant(self) -> str:
        """The variant to choose: the first by the rules; empty where no contender has learned.

        Of those that are equal by all rules it is what has the smaller p as it is printed, then
        what has fewer parameters, then the first name.
        """

        def order(name: str) -> tuple[Standing, float, float, str]:
            p = round(_p_order(_largest(self.candidates[name], name), name)[0], 3)
            return self._standings[name], p, _parameters(self.candidates[name][0], name), name

        return min(self.candidates, key=order, default="")

    @cached_property
    def decided_by(self) -> int:
        """Number of the last rule that was needed, from 1 on; 0 where there was no other candidate.

        A candidate that is equal by all rules needs none.
        """
        mine = self._standings.get(self.variant, ())
        found = (zip(mine, one, strict=True) for one in self._standings.values() if one != mine)
        return max(
            (1 + [here == there for here, there in pairs].index(False) for pairs in found),
            default=0,
        )

    @cached_property
    def alike(self) -> list[str]:
        """Other candidates that no rule tells from the choice, in order of their names."""
        standing = self._standings.get(self.variant)
        found = (name for name, one in self._standings.items() if one == standing)
        return sorted(name for name in found if name != self.variant)

    @cached_property
    def _standings(self) -> "dict[str, Standing]":
        """How each candidate stands by the rules that say something about quality or cost.

        Better than the baseline on most tasks, tied on most, tied among most variants, cheapest.
        Before ties are counted, what is above the non-neural baselines in every seed of these tasks
        is preferred. To be tied among more variants counts before cost, because variants of
        different tests were never compared: the cheaper one of them may be far behind on the test
        of the other. Before costs are compared, what is ahead of another tied one in no seed comes
        last (`outdone`).
        Costs that are about that of the baseline count as the same. Of the rest the baseline is
        first.
        """
        tied: dict[str, list[str]] = {}
        for name, found in self.candidates.items():
            for comparison in found:
                tied.setdefault(comparison.key, []).append(name)
        return {
            name: Standing(
                worse_on=-sum(beats(one, name, one.baseline) for one in here),
                behind=any(_below_non_neural(one, name) for one in here),
                tied_less=-len(here),
                among=-max(map(_size, here)),
                outdone=any(outdone(one, name, tied[one.key]) for one in here),
                cost=in_order(relative_cost(here, name), self.noise),
                other=name != here[0].baseline,
            )
            for name, here in self.candidates.items()
        }

    @cached_property
    def evidence(self) -> Comparison:
        """Of the comparisons where the choice is tied with the best, that of most contenders.

        Where it is significantly better than the baseline in some of them, it is one of these, or
        the row would say less than the rule that chose it. Of equally many, the one with the
        smaller p. Size says nothing of scores, so the p of the largest was not chosen for being
        small.
        """
        here = self.candidates.get(self.variant) or list(self.comparisons)
        better = [one for one in here if beats(one, self.variant, one.baseline)]
        return _largest(better or here, self.variant)

    @property
    def compared(self) -> int:
        """How many variants that test compares, the baseline among them."""
        return len({*self.evidence.contenders, *filter(None, (self.evidence.baseline,))})

    @property
    def beats_baseline(self) -> bool:
        """Whether the choice is significantly better than the baseline."""
        return beats(self.evidence, self.variant, self.evidence.baseline)

    @property
    def beats_uniform(self) -> bool:
        """Whether the choice is significantly better than uniform attention."""
        return beats(self.evidence, self.variant, self.evidence.uniform_baseline)

    @property
    def baseline_lacks_positions(self) -> bool:
        """Whether the baseline has no positions, and the choice or what is tied with it has.

        A recurrence has none of its own and knows the order of tokens all the same, so what is tied
        with the choice says more than the choice alone.
        """
        catalog, base = self.evidence.catalog, self.evidence.baseline
        if base is None or has_positions(catalog, base):
            return False
        best = (self.variant, *tied_with_best(self.evidence))
        return any(has_positions(catalog, name) for name in best if name)

    @property
    def baseline_is_uniform(self) -> bool:
        """Whether the baseline is not significantly better than uniform attention."""
        base, uniform = self.evidence.baseline, self.evidence.uniform_baseline
        known = {base, uniform} <= self.evidence.compared.keys()
        return known and base != uniform and not beats(self.evidence, base or "", uniform)

    @property
    def leads_only_in_training(self) -> bool:
        """Whether the choice learned sooner than the baseline, and is no better in the end."""
        ended, base = at_the_end(self.evidence), self.evidence.baseline
        known = ended is not None and {self.variant, base} <= ended.compared.keys()
        return ended is not None and known and not beats(ended, self.variant, base)

    @property
    def is_open(self) -> bool:
        """Whether nothing is above uniform attention, or decided, so that nothing is chosen yet."""
        if self.evidence.uniform_baseline is None:
            return not self.variant or not self.decides_anything
        return not self.variant or not self.beats_uniform

    @property
    def decides_anything(self) -> bool:
        """Whether a primary hypothesis of the use is decided."""
        return any(
            decision.decided for one in self.comparisons for decision in one.primary.values()
        )

    @property
    def p_baseline(self) -> float:
        """Adjusted p of the choice being better than the baseline; NaN where it is not."""
        return _p_better(self.evidence, self.variant, self.evidence.baseline)


def needs(folder: RunFolder) -> list[Need]:
    """Uses of attention of a run whose comparisons can decide something, in order of their names.

    A task of no family stands for itself, and so does a diagnostic task, which asks about one
    ability. Where the whole test is solved, its hardest part or the steps to a threshold decide.
    Input ablations, pipeline checks and comparisons of one variant, or of one seed each, decide
    nothing, and so does a run that ranks nothing.
    """
    if not folder.catalog.ranks:
        return []
    groups: dict[str, list[Comparison]] = {}
    for comparison in folder.comparisons:
        if decides(comparison):
            groups.setdefault(_title(comparison), []).append(separating(comparison))
    noise = noise_of(folder.comparisons)
    return [
        Need(title=title, comparisons=tuple(groups[title]), noise=noise) for title in sorted(groups)
    ]


def _title(comparison: Comparison) -> str:
    known, task = comparison.catalog, comparison.task
    family = known.family(task)
    if family == DIAGNOSTICS:
        return f"diagnostic test {known.task_label(task).partition('[')[0]}"
    return family or known.task_label(task)


def divided(found: Sequence[Need]) -> tuple[list[Need], list[Need], list[Need]]:
    """Where a variant is better than the baseline, where something was learned, and the rest.

    Of the first, those come last in which the lead is gone when training ends, in which the
    baseline has no positions and the choice has, or in which the baseline is no better than uniform
    attention: that it is worse there is no surprise.
    """

    def strength(need: Need) -> tuple[bool, float, str]:
        expected = need.baseline_lacks_positions or need.baseline_is_uniform
        return expected or need.leads_only_in_training, need.p_baseline, need.title

    settled = [need for need in found if not need.is_open]
    decided = sorted((need for need in settled if need.beats_baseline), key=strength)
    clear = [need for need in settled if not need.beats_baseline]
    return decided, clear, [need for need in found if need.is_open]


def decides(comparison: Comparison) -> bool:
    """Whether a comparison can say which variant to choose; a pipeline check cannot."""
    fair = [name for name in comparison.contenders if name in comparison.compared]
    if not comparison.was_to_decide:
        return False
    return bool(comparison.ranking) and comparison.most_seeds > 1 and len(fair) > 1


def first_rank(comparison: Comparison) -> list[str]:
    """Contenders that are not significantly different from the best mean."""
    return [line.variant for line in comparison.leading if line.variant in comparison.contenders]


def tied_with_best(comparison: Comparison) -> list[str]:
    """Contenders of the first rank; where some are better than uniform attention, these alone."""
    return above_uniform(comparison) or first_rank(comparison)


def above_uniform(comparison: Comparison) -> list[str]:
    """Contenders of the first rank that are significantly better than uniform attention."""
    uniform = comparison.uniform_baseline
    return [name for name in first_rank(comparison) if beats(comparison, name, uniform)]


def beats(comparison: Comparison, variant: str, other: str | None) -> bool:
    """Whether a variant is significantly better than another on the test."""
    return _p_better(comparison, variant, other) < LEVEL


def _largest(found: Sequence[Comparison], variant: str) -> Comparison:
    """The comparison of most contenders; of equally many, the one with the smaller p."""
    return min(found, key=lambda one: (-_size(one), _p_order(one, variant)))


def _size(comparison: Comparison) -> int:
    """Contenders on the whole test, of which a part or steps to a threshold may have fewer."""
    return len(comparison.whole.contenders)


def _p_order(comparison: Comparison, variant: str) -> tuple[float, float]:
    """How small p is of being better than the baseline and than uniform attention."""
    against = (
        _p_better(comparison, variant, other)
        for other in (comparison.baseline, comparison.uniform_baseline)
    )
    baseline, uniform = (p if math.isfinite(p) else 2.0 for p in against)
    return baseline, uniform


def _p_better(comparison: Comparison, variant: str, other: str | None) -> float:
    known = comparison.compared
    if comparison.plain and variant in known and other not in known:
        return _p_better(comparison.plain, variant, other)
    if other is None or other not in known or variant not in known:
        return math.nan
    return comparison.p_better(variant, other)


def _below_non_neural(comparison: Comparison, variant: str) -> bool:
    """Whether there is a non-neural baseline that some seed of a variant does not beat.

    The rule of the data is none: nothing can beat it.
    """
    if comparison.ceiling:
        return False
    return bool(comparison.without) and variant not in comparison.beats_the_rest


def _parameters(comparison: Comparison, variant: str) -> float:
    count = comparison.cells.trained(variant, "parameters_count").estimate
    return count if math.isfinite(count) else math.inf


def often_tied(found: Sequence[Need]) -> list[tuple[str, int]]:
    """Variants that are tied with the best in at least half of some needs, most frequent first.

    Of two that are tied equally often the cheaper is first.
    """
    counts = Counter(name for need in found for name in need.candidates)
    often = [(name, count) for name, count in counts.items() if 2 * count >= len(found)]

    def order(item: tuple[str, int]) -> tuple[int, float, str]:
        name, count = item
        return -count, in_order(overall_cost(found, name), found[0].noise), name

    return sorted(often, key=order)


def overall_cost(found: Sequence[Need], variant: str) -> Interval:
    """Relative training step of a variant over all comparisons of some needs."""
    return relative_cost((one for need in found for one in need.comparisons), variant)
