"""Words for the decisions on primary hypotheses."""

import math
from collections import Counter

from reports.numbers import counted, plain
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.saturation import edge
from results.statistics import MOST_SEEDS, Decision, Hypothesis

OUTCOMES = ("better", "worse", "equivalent", "undecided")
"""In the order in which they are counted."""
AT_EDGE = "at the ceiling or at chance"
"""Equivalent because both scores are the best, or chance, which shows nothing."""
WHOLE_RANGE = "more than the whole range"
"""In the place of a detectable difference that cannot be."""


def verdict_text(decision: Decision | None) -> str:
    """One or two words, and how many seeds would decide what is open.

    Args:
        decision: None where nothing is tested.
    """
    if decision is None:
        return ""
    if decision.beyond_reach:
        return f"undecided (more than {MOST_SEEDS} seeds)"
    if decision.decided or decision.seeds_to_decide is None:
        return decision.outcome
    return f"undecided (about {counted(decision.seeds_to_decide, 'seed')})"


def planned(comparison: Comparison, variant: str, reference: str | None) -> Decision | None:
    """The test of a pair that was fixed before the run, seen from the variant; None without one.

    It is that of the whole test, also where a table shows a part that was chosen after looking.

    Args:
        comparison: What was tested.
        variant: One that is compared.
        reference: The baseline or the uniform baseline; None where it is not compared.
    """
    comparison = comparison.whole
    line = comparison.compared.get(variant)
    if line is None or reference is None:
        return None
    asked = {Hypothesis(variant, reference), Hypothesis(reference, variant)}
    if not asked & comparison.primary.keys():
        return None
    return line.against_baseline if reference == comparison.baseline else line.against_uniform


def why_untested(comparison: Comparison) -> str:
    """Why no variant is tested against the baseline of the run; empty where some are."""
    name = comparison.catalog.baseline
    if name in comparison.compared:
        return ""
    if not name:
        return "the run names none"
    if name not in comparison.variants:
        return "it was not run here"
    if name in comparison.red:
        return "its certificate is red"
    scored = len(comparison.scores.get(name, ()))
    asked = max(comparison.asked_seeds(name), len(comparison.ended[name]))
    return f"it has a score in {scored} of {counted(asked, 'seed')}"


def planned_text(comparison: Comparison, variant: str, reference: str | None) -> str:
    """How the planned test of a pair ended, and whether two that are equivalent show anything."""
    decision = planned(comparison, variant, reference)
    text = verdict_text(decision)
    if decision is None or decision.outcome != "equivalent" or reference is None:
        return text
    where = edge(comparison.whole, variant, reference)
    return f"{text} {where}" if where else text


def against_ranks(comparison: Comparison, variant: str) -> str:
    """`better` or `worse` where the planned test against the baseline says so and ranks do not.

    The ranks come from a correction over all pairs. It is stricter, so that a line may share the
    rank of the baseline, or be tied with the best, and yet be worse by its planned test. Where two
    have other seeds, the planned test may even say the opposite of their means.
    """
    base, line = comparison.baseline, comparison.compared.get(variant)
    decision = planned(comparison, variant, base)
    if decision is None or base is None or line is None:
        return ""
    reference = comparison.compared[base].rank
    if decision.outcome == "worse" and (line.rank <= reference or not line.differs_from_best):
        return "worse"
    return "better" if decision.outcome == "better" and line.rank >= reference else ""


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
    detectable = detectable_text(decision.detectable, comparison.ranked_by.limits)
    if detectable == WHOLE_RANGE:
        parts.append(f"What is found in 80 % of runs is {WHOLE_RANGE} of the metric.")
    elif detectable:
        parts.append(f"Differences of {detectable} {unit} or more are found in 80 % of runs.")
    return " ".join(parts)


def detectable_text(value: float, limits: tuple[float, float]) -> str:
    """A detectable difference; one as large as the range of the metric cannot be.

    >>> detectable_text(0.5, (0.0, 1.0)), detectable_text(1.02, (0.0, 1.0))
    ('0.500', 'more than the whole range')

    Args:
        value: Smallest true difference that a test finds in 80% of runs; nothing if not finite.
        limits: Least and greatest value of the metric.
    """
    if not math.isfinite(value):
        return ""
    return WHOLE_RANGE if value >= limits[1] - limits[0] else plain(value)


def decision_counts(comparison: Comparison, reference: str | None = None) -> dict[str, int]:
    """How many primary hypotheses ended in each way; what shows nothing is counted apart.

    Args:
        comparison: What was tested.
        reference: What the variants were tested against; None for every reference.
    """
    found = Counter[str](
        AT_EDGE
        if decision.outcome == "equivalent" and edge(comparison, *asked)
        else decision.outcome
        for asked, decision in comparison.primary.items()
        if reference in (None, asked.reference)
    )
    return {outcome: found[outcome] for outcome in (*OUTCOMES, AT_EDGE)}
