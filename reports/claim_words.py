"""What was expected of a part of a claim and what was seen of it, in words."""

import math
from collections.abc import Mapping

from bench.api.claim import Bound, Claim, Contrast
from results.statistics.verdicts import Finding


def expected_in_words(contrast: Contrast) -> str:
    """Where the difference was expected: a direction and the least or the largest size.

    >>> from bench.api.claim import Side
    >>> side = Side(variant="dot", task="recall", metric="token_accuracy")
    >>> expected_in_words(Contrast(title="t", left=(side,), expect="lower", margin=0.3))
    'lower by 0.3 or more'
    >>> expected_in_words(Contrast(title="t", left=(side,), expect="equal", margin=0.05))
    'equal within 0.05'
    >>> expected_in_words(Contrast(title="t", left=(side,), expect="higher"))
    'higher'
    """
    if contrast.expect == "equal":
        return f"equal within {contrast.margin:g}"
    return contrast.expect + (f" by {contrast.margin:g} or more" if contrast.margin else "")


def networks_in_words(claim: Claim) -> list[str]:
    """Each task of a claim with its variants, and with what is not the usual of the task."""
    variants: dict[str, dict[str, None]] = {}
    for side in claim.sides:
        usual = {"backbone": side.backbone, "slot": side.slot, "training": side.training}
        more = [f"{name} {value}" for name, value in usual.items() if value]
        more += [f"probe {side.probe}"] if side.probe else []
        where = ", ".join([f"{side.task} at the size of {side.preset} before calibration", *more])
        variants.setdefault(where, {})[side.variant] = None
    return [f"{where}: {', '.join(names)}" for where, names in variants.items()]


def seen_in_words(finding: Finding) -> str:
    """The mean difference with its interval, number of seeds and p value, where they are known."""
    gap = finding.difference
    if not gap.count:
        return "not run"
    if gap.count == 1:
        return f"{gap.estimate:+.3g}, 1 seed"
    if not math.isfinite(gap.half_width):
        return f"{gap.estimate:+.3g}, no spread over {gap.count} seeds"
    return (
        f"{gap.estimate:+.3g} ({gap.low:+.3g} to {gap.high:+.3g}), {gap.count} seeds, "
        f"p = {finding.p:.2g}"
    )


def bounds_in_words(bound: Bound) -> str:
    """Between which numbers a computed one must lie.

    >>> bounds_in_words(Bound(metric="a_count", high=0.0))
    'at most 0'
    >>> bounds_in_words(Bound(metric="a_ratio", low=1.0, high=1.0))
    'exactly 1'
    >>> bounds_in_words(Bound(metric="a_ratio"))
    'shown only'
    """
    if not bound.decides:
        return "shown only"
    if math.isinf(bound.high):
        return f"at least {bound.low:g}"
    if math.isinf(bound.low):
        return f"at most {bound.high:g}"
    if bound.low == bound.high:
        return f"exactly {bound.low:g}"
    return f"{bound.low:g} to {bound.high:g}"


def range_in_words(values: Mapping[float | None, float], axis: str) -> str:
    """The computed number, or the least and the greatest over the places of an axis.

    >>> range_in_words({2.0: 0.5, 4.0: 0.75}, "width")
    '0.5 to 0.75 (2 values of width)'
    """
    if not values:
        return "not run"
    low, high = min(values.values()), max(values.values())
    if len(values) == 1:
        return f"{low:.4g}"
    span = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"{span} ({len(values)} values of {axis.replace('_', ' ') or 'x'})"
