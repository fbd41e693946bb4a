"""A comparison: the cells of one task whose variants may be compared, and their ranking."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import pandas as pd

from bench.api.metric import Side
from reports.blocks import clean
from reports.catalog import Catalog, MetricInfo
from reports.numbers import Seen, with_interval
from reports.ranked_table.cells import NOTHING, ComparedCells
from reports.ranked_table.stored_values import BySeed, StoredValues
from results.comparable import usual
from results.statistics import (
    Decision,
    Hypothesis,
    Interval,
    PairedDifference,
    Ranked,
    Ranking,
    SequentialTable,
    rank,
    t_interval,
)

LEVEL = 0.05
"""A p below it is called significant."""
BESIDE_SCORES = ("slot", "dtype", "device", "impl")
"""Columns in which timings must agree with the scores that they stand beside."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All quality cells of one task that compete."""

    key: str
    """`comparison-1`, in the order of the report."""
    title: str
    task: str
    metric: str
    frame: pd.DataFrame
    """Rows of the quality cells of this comparison."""
    aside: pd.DataFrame
    """Test rows of non-neural baselines, of all cells of the task, oldest first."""
    catalog: Catalog
    red: Mapping[str, list[str]]
    """Why each variant with a red certificate has one."""
    part: str = ""
    """Part of the test that is compared, such as `length 64`; empty for the whole."""
    given: BySeed | None = None
    """Scores in the place of those of the whole test."""
    measured: MetricInfo | None = None
    """What `given` is, where no task declares it."""
    plain: "Comparison | None" = None
    """The comparison on the whole test by its declared metric, where this is another one."""

    @property
    def whole(self) -> "Comparison":
        """The comparison on the whole test by its declared metric, of which planned tests are."""
        return self.plain or self

    @property
    def ranked_by(self) -> MetricInfo:
        """The metric that ranks, with the margin of the task where that has one of its own."""
        if self.measured:
            return self.measured
        known, task = self.catalog.metric(self.metric), self.catalog.task(self.task)
        return replace(known, margin=task.margin_by(self.metric, known.margin))

    @property
    def better(self) -> Side:
        """Which side of the metric is best."""
        return self.ranked_by.better

    @cached_property
    def place(self) -> tuple[str, ...]:
        """Settings of `BESIDE_SCORES`, of code the one that most variants have."""
        return tuple(usual(self.frame, column) for column in BESIDE_SCORES)

    @property
    def backbone(self) -> str:
        """The network that most variants have."""
        return usual(self.frame, "backbone")

    @property
    def pipeline_check(self) -> str:
        """Why it is no evidence, in one sentence; empty where it is."""
        return self.catalog.pipeline_check(self.task, self.backbone)

    @property
    def was_to_decide(self) -> bool:
        """Whether it is neither a pipeline check nor an input ablation."""
        return self.catalog.task(self.task).decides(self.task, self.backbone)

    @property
    def variants(self) -> list[str]:
        """Every variant that was asked, with or without a value."""
        return sorted(str(name) for name in self.frame["variant"].unique())

    @property
    def baseline(self) -> str | None:
        """The baseline, if it competes here with a value and a green certificate."""
        name = self.catalog.baseline
        return name if name in self.scores and name not in self.red else None

    @cached_property
    def stored(self) -> StoredValues:
        """Every value of its cells."""
        return self.plain.stored if self.plain else StoredValues(self.frame)

    @cached_property
    def cells(self) -> ComparedCells:
        """What its cells were, and what training stored beside the scores."""
        return self.plain.cells if self.plain else ComparedCells(self.frame)

    @cached_property
    def scores(self) -> BySeed:
        """Test score by seed of each variant."""
        return self.stored.final(self.metric) if self.given is None else dict(self.given)

    @cached_property
    def ended(self) -> dict[str, frozenset[int]]:
        """Seeds of each variant that have been run, with a score or without."""
        seeds = self.frame.groupby("variant")["seed"]
        return {str(name): frozenset(found.tolist()) for name, found in seeds}

    @cached_property
    def means(self) -> dict[str, Interval]:
        """Mean score of each variant that has one, ranked or not."""
        return {name: t_interval([*by_seed.values()]) for name, by_seed in self.scores.items()}

    @property
    def most_seeds(self) -> int:
        """Seeds of the variant that has most."""
        return max((len(by_seed) for by_seed in self.scores.values()), default=0)

    def asked_seeds(self, variant: str) -> int:
        """How many seeds a variant should have; where seeds were added, each has its own number."""
        return len(self.ended[variant]) if self.catalog.looks else self.most_seeds

    @cached_property
    def compared(self) -> dict[str, Ranked]:
        """Ranks and differences to the baseline, without variants of a red certificate.

        Where some have several seeds, variants with one are left out: they differ significantly
        from nothing, so the best of them would open the first rank for all.
        """
        return {line.variant: line for line in self._ranking.lines} if self._ranking else {}

    @cached_property
    def _ranking(self) -> Ranking | None:
        """Every test of the comparison; None where nothing can be tested."""
        if self.better == "none" or not self._fair:
            return None
        uniform = self.uniform_baseline
        return rank(
            self._fair,
            self.better,
            baseline=self._base,
            uniform=uniform if uniform in self._fair else None,
            controls=[name for name in self._fair if self.catalog.variant(name).is_control],
            margin=self.ranked_by.margin,
            table=self._looked_at,
        )

    @property
    def _looked_at(self) -> SequentialTable | None:
        """The scores as the looks of the run saw them; None where all seeds were planned at once.

        It holds for every metric, whichever one decided where seeds were added.
        """
        looks = self.catalog.looks
        return SequentialTable(self._fair, self.ended, looks) if looks else None

    @property
    def primary(self) -> dict[Hypothesis, Decision]:
        """Decisions on what was to be tested before the run: contenders against the references.

        Empty where each variant has one seed or the preset ranks nothing.
        """
        if self._ranking is None or not self.catalog.ranks or self.most_seeds < 2:
            return {}
        return self._ranking.tests.primary

    @cached_property
    def _fair(self) -> dict[str, dict[int, float]]:
        """Scores of what is compared."""
        least = min(2, self.most_seeds)
        fair = [
            name
            for name, found in self.scores.items()
            if name not in self.red and len(found) >= least
        ]
        return {name: self.scores[name] for name in sorted(fair, key=self._simplicity)}

    @property
    def _base(self) -> str | None:
        return self.baseline if self.baseline in self._fair else None

    def p_better(self, variant: str, other: str) -> float:
        """Adjusted p where a variant is better than another on common seeds; NaN where it is not.

        The means are of all seeds of each, and may lie the other way round where these differ.
        """
        return self._ranking.tests.p_better(variant, other) if self._ranking else math.nan

    def turned(self, variant: str) -> list[str]:
        """Who has a worse mean, and is significantly better on common seeds; best mean first.

        Nobody, where all have the same seeds.
        """
        names = [*self.compared]
        below = names[names.index(variant) + 1 :] if variant in names else []
        return [name for name in below if self.p_better(name, variant) < LEVEL]

    def tested(self, variant: str, other: str) -> PairedDifference | None:
        """Score minus that of another as it was tested; None for what is not compared."""
        if self._ranking is None or frozenset((variant, other)) not in self._ranking.tests.pairs:
            return None
        return self._ranking.tests.table.difference(variant, other)

    def _simplicity(self, variant: str) -> tuple[bool, float, str]:
        """Order of equal means: the baseline, then what has fewer parameters, then by name."""
        count = self.cells.trained(variant, "parameters_count").estimate
        known = count if math.isfinite(count) else math.inf
        return variant != self.catalog.baseline, known, variant

    @property
    def leading(self) -> list[Ranked]:
        """Lines of rank 1 of which a seed has learned; no two of them are separable.

        What a report calls the best, wherever it does; empty where each has one seed. What is worse
        than the baseline by the test that was planned is not among the best, unless all are.
        """
        if self.most_seeds < 2:
            return []
        first = [line for line in self.ranking if line.rank == 1]
        first = [line for line in first if not self.is_worse_by_plan(line.variant)] or first
        return [line for line in first if not self.lost_every_seed(line.variant)]

    def is_worse_by_plan(self, variant: str) -> bool:
        """Whether the planned test, of the whole test, finds it worse than the baseline."""
        line = self.whole.compared.get(variant)
        return line is not None and line.worse_than_baseline

    @property
    def uniform_baseline(self) -> str | None:
        """The variant with equal weights; who is not better than it has not learned."""
        scored = self.whole.scores
        return next((name for name in scored if self.catalog.variant(name).uniform_baseline), None)

    def lost_every_seed(self, variant: str) -> bool:
        """Whether no seed of a contender is better than uniform attention."""
        lost, seeds = self.lost_seeds(variant)
        return 0 < seeds == lost and not self.catalog.variant(variant).is_control

    def above_every_seed(self, variant: str) -> list[str]:
        """Contenders of which each seed is better than each of a variant, on the test.

        None where the variant has no score, as one has none that never reached a threshold.
        """
        if not self.scores.get(variant):
            return []
        sign = -1.0 if self.better == "lower" else 1.0
        level = max(sign * value for value in self.scores[variant].values())
        return [
            name
            for name in self.contenders
            if name in self.compared
            and min(sign * value for value in self.scores[name].values()) > level
        ]

    def score_text(self, variant: str) -> str:
        """Mean score with its interval, or with the extremes of its seeds where that cannot be."""
        return self._score(variant, Seen.of(self.scores.get(variant, {}).values()))

    def short_score(self, variant: str) -> str:
        """The same without the number of its seeds, for where a sentence says it."""
        seen = Seen.of(self.scores.get(variant, {}).values())
        return self._score(variant, seen._replace(seeds=0))

    def _score(self, variant: str, seen: Seen) -> str:
        mean = self.means.get(variant, NOTHING)
        limits = self.ranked_by.limits
        return with_interval(mean.estimate, mean.low, mean.high, limits=limits, seen=seen)

    def differences(self, variant: str, other: str | None) -> list[float]:
        """Score minus that of another variant on each common seed."""
        mine, theirs = self.scores.get(variant, {}), self.scores.get(other or "", {})
        return [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]

    def gaps_of(self, difference: Interval | None, variant: str, other: str | None) -> list[float]:
        """What a difference is the mean of: score minus that of another, on the seeds it has.

        In a run with looks, the seeds after the last complete look are in no difference yet.

        Args:
            difference: Between the two; None where none is known, and all common seeds count.
            variant: One of the two.
            other: The other one.
        """
        gaps = self.differences(variant, other)
        return gaps if difference is None else gaps[: difference.count]

    def lost_seeds(self, variant: str) -> tuple[int, int]:
        """Seeds that are no better than uniform attention, and all seeds; (0, 0) without it.

        A seed is lost if it does not beat the mean of the uniform baseline on validation.
        """
        if self.plain:
            return self.plain.lost_seeds(variant)
        found = self._validation
        if self.uniform_baseline not in found or variant not in found or self.better == "none":
            return 0, 0
        level = fmean(found[self.uniform_baseline].values())
        sign = -1.0 if self.better == "lower" else 1.0
        mine = found[variant].values()
        return sum(sign * value <= sign * level for value in mine), len(mine)

    @cached_property
    def _validation(self) -> BySeed:
        return self.stored.final(self.metric, "validation")

    @cached_property
    def without(self) -> dict[str, dict[int, float]]:
        """Test score by seed of non-neural baselines, best mean first, of equals the rule.

        It is the same in every cell of a task and seed, so the newest cell speaks for all.
        """
        rows = self.aside[self.aside["metric"] == self.metric]
        found: dict[str, dict[int, float]] = {}
        for (name, seed), values in rows.groupby(["baseline", "seed"])["value"]:
            found.setdefault(clean(str(name)), {})[int(str(seed))] = float(values.iloc[-1])
        side = 1.0 if self.better == "lower" else -1.0

        def order(item: tuple[str, Mapping[int, float]]) -> tuple[float, bool]:
            return side * fmean(item[1].values()), item[0] != self._rule

        return dict(sorted(found.items(), key=order))

    @property
    def contenders(self) -> list[str]:
        """Variants with a score and a green certificate that are no controls."""
        fair = [name for name in self.scores if name not in self.red]
        return [name for name in fair if not self.catalog.variant(name).is_control]

    @property
    def ceiling(self) -> str:
        """The non-neural baseline that is the rule of the data, which nothing can beat; or nothing.

        A rule that is learned from too few examples is a competitor as others are.
        """
        best = self.catalog.level(self.task, "ceiling")
        found = self.without.get(self._rule, {}).values()
        return self._rule if found and all(value == best for value in found) else ""

    @property
    def _rule(self) -> str:
        return clean(self.catalog.task(self.task).rule_baseline)

    @property
    def beats_the_rest(self) -> list[str]:
        """Contenders that are better than the best of `without` in every seed."""
        level = next(iter(self.without.values()), {})
        sign = -1.0 if self.better == "lower" else 1.0

        def wins(by_seed: Mapping[int, float]) -> bool:
            pairs = [(by_seed[seed], level[seed]) for seed in by_seed.keys() & level.keys()]
            return bool(pairs) and all(sign * mine > sign * other for mine, other in pairs)

        return [name for name in self.contenders if wins(self.scores[name])]

    @property
    def ranking(self) -> list[Ranked]:
        """Lines by rank, best first; empty where the preset ranks nothing.

        With one seed each they are in the order of their scores, and their ranks mean nothing.
        """
        return [*self.compared.values()] if self.catalog.ranks else []
