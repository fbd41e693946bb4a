"""Words for the decisions on primary hypotheses."""

import math
from collections import Counter

from reports.numbers import counted, plain
from reports.ranked_table.comparison import Comparison
from results.statistics import Decision

OUTCOMES = ("better", "worse", "equivalent", "undecided")
"""In the order in which they are counted."""


def verdict_text(decision: Decision | None) -> str:
    """One or two words, and how many seeds would decide what is open.

    Args:
        decision: None where nothing is tested.
    """
    if decision is None:
        return ""
    if decision.decided or decision.seeds_to_decide is None:
        return decision.outcome
    return f"undecided (about {counted(decision.seeds_to_decide, 'seed')})"


def verdict_help(comparison: Comparison, decision: Decision | None) -> str:
    """The numbers behind a verdict, for its tooltip: p values, effect size and power."""
    if decision is None:
        return ""
    unit, found = comparison.ranked_by.unit, decision.difference
    parts = [f"p = {decision.p_adjusted:.2g} of no difference."]
    margin = comparison.ranked_by.margin
    if margin is not None and not math.isnan(decision.p_equivalent):
        parts.append(
            f"p = {decision.p_equivalent:.2g} of a difference of {plain(margin)} {unit} or more."
        )
    if math.isfinite(found.effect_size):
        parts.append(f"Effect size {found.effect_size:.2g} standard deviations of one seed.")
    if math.isfinite(decision.detectable):
        parts.append(
            f"Differences of {decision.detectable:.2g} {unit} or more are found in 80 % of runs."
        )
    return " ".join(parts)


def decision_counts(comparison: Comparison) -> dict[str, int]:
    """How many primary hypotheses ended in each way."""
    found = Counter[str](one.outcome for one in comparison.primary.values())
    return {outcome: found[outcome] for outcome in OUTCOMES}
