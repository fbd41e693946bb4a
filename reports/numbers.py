"""Numbers as text: as many digits as the interval supports, never more."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from reports.blocks import NO_VALUE

UNBOUNDED = (-math.inf, math.inf)
"""Limits of a quantity that can have any value."""

ROUNDING = 1e-12
"""A number smaller than this is what rounding leaves of zero."""

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def digits_for(half_width: float) -> int:
    """Decimals that keep two significant digits of an interval's half width.

    >>> digits_for(0.021), digits_for(3.4), digits_for(1200.0)
    (3, 1, 0)
    """
    if not math.isfinite(half_width) or half_width <= 0:
        return 3
    return min(6, max(0, 1 - math.floor(math.log10(half_width))))


class Seen(NamedTuple):
    """The extremes of what was measured, for where a t interval says what cannot be."""

    low: float
    high: float
    seeds: int
    """How many values there were; 0 where the text around says it."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Extremes of the values of seeds; NaN of none."""
        known = [*values]
        if not known:
            return cls(math.nan, math.nan, 0)
        return cls(min(known), max(known), len(known))


def limits(low: float | None, high: float | None) -> tuple[float, float]:
    """Least and greatest value of a quantity; None where nothing bounds it.

    >>> limits(0.0, 1.0), limits(0.0, None), limits(None, None)
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    return -math.inf if low is None else low, math.inf if high is None else high


def plain(value: float, digits: int | None = None) -> str:
    """Print with fixed decimals, or three significant digits.

    Rounding errors, which differ from one processor to another, never show. What is almost 1 does
    not print as 1, for all examples right and all but one are two results.

    >>> plain(0.123456), plain(1234.5), plain(12.0, 1), plain(-0.0001, 2), plain(1 - 1e-15)
    ('0.123', '1,234', '12.0', '0.00', '1.00')
    >>> plain(0.9996), plain(0.99999), plain(0.9994)
    ('0.9996', '0.99999', '0.999')
    >>> plain(0.0), plain(-3e-17)
    ('0.00', '0.00')
    """
    if not math.isfinite(value):
        return NO_VALUE
    value = 0.0 if abs(value) < ROUNDING else float(f"{value:.12g}")
    if digits is None:
        digits = _three_digits(value)
        while digits < 6 and abs(value) < 1 <= float(f"{abs(value):.{digits}f}"):
            digits += 1
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _three_digits(value: float) -> int:
    """Decimals of three significant digits."""
    size = 0 if value == 0 else math.floor(math.log10(abs(value)))
    return min(6, max(0, 2 - size))


def with_interval(
    value: float,
    low: float,
    high: float,
    *,
    signed: bool = False,
    limits: tuple[float, float] = UNBOUNDED,
    seen: Seen | None = None,
) -> str:
    """Print an estimate and its interval: `±` where it is symmetric, else brackets.

    An interval without width, or without bounds, is left away. One that leaves the range of the
    quantity (a word error rate below 0, an accuracy above 1) says what cannot be. There the
    extremes of the seeds follow the estimate.

    >>> with_interval(0.9, 0.88, 0.92), with_interval(1.5, 1.2, 2.0), with_interval(2.0, 2.0, 2.0)
    ('0.900 ± 0.020', '1.50 [1.20, 2.00]', '2.00')
    >>> with_interval(0.31, -0.54, 1.16, limits=(0, 9), seen=Seen.of([0.1, 0.13, 0.7]))
    '0.310 (0.10–0.70, 3 seeds)'

    Args:
        value: The estimate.
        low: Lower bound of its interval, -inf if nothing is known.
        high: Upper bound.
        signed: Whether it is a difference, which has a sign and twice the range.
        limits: Least and greatest value that the quantity can have.
        seen: Extremes of the seeds; the interval is printed whatever it says without them.
    """
    if not math.isfinite(value):
        return NO_VALUE
    sign = "+" if signed and value > 0 else ""
    up, down = high - value, value - low
    if not (math.isfinite(up) and math.isfinite(down)) or max(up, down) <= 1e-9 * abs(value):
        return sign + plain(value)
    if seen is not None and leaves_range(low, high, limits, seen, signed=signed):
        return _of_seeds(value, seen, signed=signed)
    digits = digits_for(max(up, down))
    if math.isclose(up, down, rel_tol=0.02):
        return f"{sign}{plain(value, digits)} ± {plain(up, digits)}"
    return f"{sign}{between(value, low, high)}"


def leaves_range(
    low: float, high: float, limits: tuple[float, float], seen: Seen, *, signed: bool = False
) -> bool:
    """Whether bounds leave a range that the seeds themselves keep to.

    A metric whose declared range is too narrow is not hidden: its seeds say so.
    """
    least, most = limits
    if signed:
        least, most = least - most, most - least
    under, over = low < least <= seen.low, high > most >= seen.high
    return under or over


def _of_seeds(value: float, seen: Seen, *, signed: bool) -> str:
    """An estimate, the least and the greatest seed, and how many there are where that is known."""
    largest = max(abs(seen.low), abs(seen.high))
    digits = min(digits_for((seen.high - seen.low) / 2), _three_digits(largest))
    while digits < 6 and plain(seen.low, digits) == plain(seen.high, digits):
        digits += 1
    # the estimate has three significant digits at least
    of_value = digits if digits > _three_digits(value) else None
    middle, low, high = (
        f"{'+' if signed and one > 0 else ''}{plain(one, places)}"
        for one, places in ((value, of_value), (seen.low, digits), (seen.high, digits))
    )
    dash = " – " if signed else "–"
    count = f", {counted(seen.seeds, 'seed')}" if seen.seeds else ""
    return f"{middle} ({low}{dash}{high}{count})"


def between(value: float, low: float, high: float) -> str:
    """Print a median between its quantiles.

    >>> between(1.5, 1.2, 2.0), between(3.0, 3.0, 3.0)
    ('1.50 [1.20, 2.00]', '3.00')
    """
    if low == high:
        return plain(value)
    digits = digits_for(max(high - value, value - low))
    return f"{plain(value, digits)} [{plain(low, digits)}, {plain(high, digits)}]"


def scaled(value: float) -> str:
    """Print a count with a decimal prefix.

    >>> scaled(213_440), scaled(12), scaled(2.5e9)
    ('213 k', '12', '2.50 G')
    """
    if not math.isfinite(value):
        return NO_VALUE
    for size, prefix in _SCALES:
        if abs(value) >= size:
            return f"{plain(value / size)} {prefix}"
    return plain(value, 0 if value == int(value) else None)


def least_to_most(counts: Collection[int]) -> str:
    """Print one number where all are the same, else the least and the most.

    >>> least_to_most([5, 5]), least_to_most([3, 8, 5])
    ('5', '3 to 8')
    """
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def percent(ratio: float) -> str:
    """Print a ratio as a signed difference.

    >>> percent(1.083), percent(0.5), percent(1.0)
    ('+8.3 %', '-50 %', '±0 %')
    """
    if not math.isfinite(ratio):
        return NO_VALUE
    change = 100 * (ratio - 1)
    if abs(change) < 0.05:
        return "±0 %"
    return f"{change:+.0f} %" if abs(change) >= 10 else f"{change:+.1f} %"


def probability(value: float) -> str:
    """Print a p value.

    >>> probability(0.0004), probability(0.034), probability(0.4)
    ('< 0.001', '0.034', '0.40')
    """
    if not math.isfinite(value):
        return NO_VALUE
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def p_text(value: float) -> str:
    """A p value inside a sentence.

    >>> p_text(0.0004), p_text(0.034)
    ('p < 0.001', 'p = 0.034')
    """
    text = probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def counted(count: int, noun: str, several: str = "") -> str:
    """A number of things.

    >>> counted(1, "task"), counted(2, "task"), counted(0, "process", "processes")
    ('1 task', '2 tasks', '0 processes')

    Args:
        count: How many.
        noun: What one is called.
        several: What several are called, where that is not the noun with an s.
    """
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"
