"""Training steps until the validation score reached a threshold, where the score is saturated."""

from dataclasses import replace

from reports.catalog import MetricInfo, uncapitalized
from reports.numbers import counted
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.saturation import saturation_level

STEPS = "steps_to_threshold_count"
"""Name of the metric."""


def steps_to_threshold(comparison: Comparison) -> Comparison | None:
    """The same comparison by steps until validation was saturated; None where it says nothing.

    A variant has steps where every seed reached the threshold: a mean over the others would be
    one of the lucky seeds. At least two contenders must have some, and the baseline.
    """
    steps = _steps(comparison)
    whole = {
        name: steps[name]
        for name, by_seed in comparison.scores.items()
        if by_seed.keys() <= steps.get(name, {}).keys()
    }
    if sum(name in whole for name in comparison.contenders) < 2:
        return None
    if comparison.baseline is not None and comparison.baseline not in whole:
        return None
    title = uncapitalized(comparison.ranked_by.title)
    return replace(
        comparison,
        metric=STEPS,
        measured=MetricInfo(
            name=STEPS,
            title=f"Steps to {title} {saturation_level(comparison):.3g}",
            unit="steps",
            better="lower",
            limits=(0.0, float("inf")),
        ),
        given=whole,
        plain=comparison,
    )


def has_curves(comparison: Comparison) -> bool:
    """Whether validation scores along training are stored."""
    return bool(comparison.stored.curves(comparison.metric))


def not_reached(comparison: Comparison, variant: str) -> str:
    """Say that some or all seeds never reached the threshold; empty where all did.

    Args:
        comparison: From `steps_to_threshold`; of any other nothing is said.
        variant: One that competes there.
    """
    plain = comparison.plain
    if comparison.metric != STEPS or plain is None or variant not in plain.scores:
        return ""
    seeds = plain.scores[variant].keys()
    reached = len(seeds & _steps(plain).get(variant, {}).keys())
    if reached == len(seeds):
        return ""
    return f"reached by {reached} of {counted(len(seeds), 'seed')}" if reached else "not reached"


def explanation(comparison: Comparison) -> str:
    """What the steps are, who never reached the threshold, and how fine the steps are known."""
    plain = comparison.plain
    if comparison.metric != STEPS or plain is None:
        return ""
    level = f"{saturation_level(plain):.3g}"
    better = "at most" if plain.better == "lower" else "at least"
    title = uncapitalized(plain.ranked_by.title)
    said = [
        f"Nearly all variants have a test {title} of {better} {level}.",
        "So the table ranks by training steps: those until validation first reached this value.",
        f"Validation was scored every {resolution(plain):g} steps, and steps are known no finer.",
    ]
    label = comparison.catalog.label
    missed = {name: not_reached(comparison, name) for name in comparison.variants}
    never = [label(name) for name, text in missed.items() if text == "not reached"]
    partly = [f"{label(name)} ({text})" for name, text in missed.items() if " of " in text]
    if never:
        said.append(f"Never reached by {join(never)}.")
    if partly:
        said.append(f"Not ranked, because some seeds never reached it: {join(partly)}.")
    return " ".join(said)


def _steps(comparison: Comparison) -> dict[str, dict[int, float]]:
    """First step with a validation score at the threshold, by variant and seed."""
    sign = -1.0 if comparison.better == "lower" else 1.0
    level = saturation_level(comparison)
    found: dict[str, dict[int, float]] = {}
    for variant, by_seed in comparison.stored.curves(comparison.metric).items():
        for seed, curve in by_seed.items():
            first = next((x for x, value in curve.items() if sign * value >= sign * level), None)
            if first is not None:
                found.setdefault(variant, {})[seed] = first
    return found


def resolution(comparison: Comparison) -> float:
    """Largest distance between two validations (steps); steps are known no finer."""
    curves = comparison.stored.curves(comparison.metric)
    gaps = [
        after - before
        for by_seed in curves.values()
        for curve in by_seed.values()
        for before, after in zip([0.0, *curve], curve, strict=False)
    ]
    return max(gaps)
