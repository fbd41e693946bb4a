"""The primary hypotheses of a comparison: each contender against the baseline and against uniform.

They are fixed before the run, so they alone share the error rate of the table. All other pairs are
secondary (`results.statistics.ranking`).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from scipy import special

from results.statistics.decisions import holm
from results.statistics.intervals import t_quantile
from results.statistics.moderated import (
    DifferenceTable,
    ModeratedDifference,
    ModeratedTable,
    Scores,
)
from results.statistics.pareto import Better

Outcome = Literal["better", "worse", "equivalent", "undecided"]

POWER = 0.8
"""Share of runs in which the number of seeds that is named would decide."""
MOST_SEEDS = 200
"""More seeds than this are not named: nobody will run them."""


class Hypothesis(NamedTuple):
    """What is tested: a variant against a reference."""

    variant: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the rows say about one primary hypothesis."""

    difference: ModeratedDifference
    """Score of the variant minus that of the reference."""
    outcome: Outcome
    """`better` or `worse` where the difference is significant, `equivalent` where it is shown to
    lie inside the margin, `undecided` otherwise. A difference may be both significant and inside
    the margin; then it is `better` or `worse`."""
    p_adjusted: float
    """p of "no difference", Holm-adjusted over the primary hypotheses of the comparison."""
    p_equivalent: float
    """p of "at least the margin", adjusted in the same way; NaN without a margin."""
    detectable: float
    """Smallest true difference that is found in 80% of runs, in the unit of the score."""
    seeds_to_decide: int | None
    """Seeds that would probably decide if the mean and the spread stay as they are; None where
    it is decided, where no spread is known, or where more than `MOST_SEEDS` were needed."""

    @property
    def decided(self) -> bool:
        """Whether anything was shown."""
        return self.outcome != "undecided"

    @property
    def beyond_reach(self) -> bool:
        """Whether more than `MOST_SEEDS` would be needed for a decision."""
        known = bool(self.difference.error) and math.isfinite(self.detectable)
        return not self.decided and self.seeds_to_decide is None and known


def primary_hypotheses(
    variants: Collection[str],
    *,
    baseline: str | None,
    uniform: str | None,
    controls: Collection[str] = (),
) -> list[Hypothesis]:
    """Name what is tested, from names alone: the scores play no part.

    Args:
        variants: Everything that is compared.
        baseline: What all contenders are compared with; None without one.
        uniform: The uniform baseline; None without one.
        controls: Variants that are references, not contenders.
    """
    asked = dict.fromkeys(name for name in (baseline, uniform) if name is not None)
    references = [name for name in asked if name in variants]
    contenders = [name for name in variants if name not in {*references, *controls}]
    found = [Hypothesis(name, reference) for reference in references for name in contenders]
    if len(references) == 2:
        found.append(Hypothesis(references[0], references[1]))
    return found


def primary_decisions(
    table: DifferenceTable,
    hypotheses: Collection[Hypothesis],
    better: Better,
    *,
    margin: float | None = None,
    level: float = 0.95,
) -> dict[Hypothesis, Decision]:
    """Decide the primary hypotheses of one comparison.

    Of tables without a true difference at most 1 - level hold a claim of one. Of tables whose
    differences all reach the margin at most 1 - level hold a claim of equivalence.

    Args:
        table: The scores.
        hypotheses: From `primary_hypotheses`.
        better: Which side of the score is best.
        margin: Largest difference without practical meaning, in the unit of the score, > 0, fixed
            before the run; None claims no equivalence.
        level: Of the intervals and the claims.

    Raises:
        ValueError: The margin is not positive.
    """
    if margin is not None and not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}")
    found = {one: table.difference(one.variant, one.reference, level) for one in hypotheses}
    p_adjusted = holm([one.p for one in found.values()])
    p_equivalent = (
        [math.nan] * len(found)
        if margin is None
        else holm([one.p_outside(margin) for one in found.values()])
    )
    alpha = 1 - level
    strict = alpha / max(len(found), 1)
    return {
        hypothesis: Decision(
            difference=difference,
            outcome=_outcome(difference, p, q, better, alpha),
            p_adjusted=p,
            p_equivalent=q,
            detectable=difference.detectable(strict * difference.share, POWER),
            seeds_to_decide=(
                None
                if min(p, 1.0 if math.isnan(q) else q) < alpha
                else seeds_to_decide(difference, margin, strict * difference.share)
            ),
        )
        for (hypothesis, difference), p, q in zip(
            found.items(), p_adjusted, p_equivalent, strict=True
        )
    }


def turned(decision: Decision, difference: ModeratedDifference) -> Decision:
    """The same decision, seen from the other side.

    Args:
        decision: Of a variant against a reference.
        difference: Of the reference against the variant.
    """
    opposite: dict[Outcome, Outcome] = {"better": "worse", "worse": "better"}
    outcome = opposite.get(decision.outcome, decision.outcome)
    return replace(decision, difference=difference, outcome=outcome)


def secondary(
    difference: ModeratedDifference, p_adjusted: float, better: Better, alpha: float
) -> Decision:
    """A decision that was not fixed before the run: no equivalence, no number of seeds."""
    return Decision(
        difference=difference,
        outcome=_outcome(difference, p_adjusted, math.nan, better, alpha),
        p_adjusted=p_adjusted,
        p_equivalent=math.nan,
        detectable=math.nan,
        seeds_to_decide=None,
    )


def _outcome(
    difference: ModeratedDifference, p: float, q: float, better: Better, alpha: float
) -> Outcome:
    if p < alpha:
        return "better" if (difference.estimate > 0) == (better == "higher") else "worse"
    return "equivalent" if q < alpha else "undecided"


def seeds_to_decide(
    difference: ModeratedDifference, margin: float | None, alpha: float
) -> int | None:
    """Fewest seeds with which one of the two tests would decide in 80% of runs.

    Assumes that the mean difference and the spread stay as they are; a small number of seeds
    estimates both badly, so this is an order of magnitude.

    Args:
        difference: What is known so far.
        margin: For the test of equivalence; None without one.
        alpha: Two-sided level after adjustment for the other hypotheses.

    Returns:
        None where no spread is known or more than `MOST_SEEDS` were needed.
    """
    if not difference.error:
        return None
    spread = difference.error * math.sqrt(difference.count)
    per_seed = difference.freedom / difference.count
    for count in range(difference.count + 1, MOST_SEEDS + 1):
        error, freedom = spread / math.sqrt(count), per_seed * count
        quantile = float(special.stdtrit(freedom, POWER))
        if abs(difference.estimate) >= (t_quantile(1 - alpha, freedom) + quantile) * error:
            return count
        if margin is not None:
            # both one-sided tests must succeed, so each gets half of the risk of missing
            one_sided = float(special.stdtrit(freedom, 1 - alpha))
            missed = float(special.stdtrit(freedom, (1 + POWER) / 2))
            if margin - abs(difference.estimate) >= (one_sided + missed) * error:
                return count
    return None


def decide(
    scores: Scores,
    better: Better,
    *,
    baseline: str | None,
    uniform: str | None = None,
    controls: Collection[str] = (),
    margin: float | None = None,
    level: float = 0.95,
    table: DifferenceTable | None = None,
) -> dict[Hypothesis, Decision]:
    """Name and decide the primary hypotheses of a table of scores; see `primary_decisions`.

    Where seeds were added look by look, `table` is the `SequentialTable` of the same scores.
    """
    table = ModeratedTable(scores) if table is None else table
    known = [name for name, by_seed in scores.items() if by_seed]
    hypotheses = primary_hypotheses(known, baseline=baseline, uniform=uniform, controls=controls)
    return primary_decisions(table, hypotheses, better, margin=margin, level=level)
