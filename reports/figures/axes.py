"""Scales, their ticks, and the frame that they make."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.figures.svg import number, segment, words

TICKS = 5
"""Most ticks of an axis, or one more."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where values of an axis are drawn."""

    low: float
    high: float
    start: float
    """Place of `low` (pixels)."""
    end: float
    """Place of `high` (pixels)."""
    log: bool = False

    def at(self, value: float) -> float:
        """Place of a value; what lies outside is drawn at the end that it passed."""
        low, high = self._of(self.low), self._of(self.high)
        share = (self._of(value) - low) / (high - low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _of(self, value: float) -> float:
        if not self.log:
            return value
        return math.log10(value) if value > 0 else -math.inf

    @property
    def ticks(self) -> list[float]:
        """Round values inside the axis."""
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high)


def scale_over(
    values: Iterable[float],
    places: tuple[float, float],
    *,
    log: bool = False,
    limits: tuple[float, float] = (-math.inf, math.inf),
    margin: float = 0.05,
) -> Scale:
    """Make a scale that shows all values, with room around them but never outside of the limits."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    known = [min(limits[1], max(limits[0], value)) for value in known] or [1.0]
    low, high = min(known), max(known)
    if log:
        room = max((high / low) ** margin, 1.08)
        return Scale(low=low / room, high=high * room, start=places[0], end=places[1], log=True)
    room = margin * (high - low) or 0.05 * abs(high) or 0.5
    bottom, top = max(limits[0], low - room), min(limits[1], high + room)
    if top <= bottom:
        bottom, top = low - room, high + room
    return Scale(low=bottom, high=top, start=places[0], end=places[1])


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * unit for unit in (1, 2, 5, 10) if power * unit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [at * step for at in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; twos and fives beside them, or round steps, where there are too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for units in ((1,), (1, 3), (1, 2, 5)):
        found = [unit * 10.0**power for power in range(first, last + 1) for unit in units]
        found = [value for value in found if low <= value <= high]
        if len(found) >= 3:
            every = math.ceil(len(found) / (TICKS + 1))
            return found[::every]
    return [value for value in _ticks(low, high) if value > 0]


def short(value: float) -> str:
    """A tick as few letters.

    >>> short(0.2), short(20000), short(1500000), short(0.30000000000000004)
    ('0.2', '20k', '1.5M', '0.3')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def frame(
    x: Scale,
    y: Scale,
    labels: tuple[str, str],
    *,
    x_ticks: Sequence[float] = (),
) -> list[str]:
    """Grid, ticks, axis lines and axis labels around a plot."""
    xs, ys = [*(x_ticks or x.ticks)], y.ticks
    grid = [f"M{number(x.at(v))} {number(y.start)}V{number(y.end)}" for v in xs]
    grid += [f"M{number(x.start)} {number(y.at(v))}H{number(x.end)}" for v in ys]
    parts = [f'<path class="g" d="{"".join(grid)}"/>']
    parts += [words(x.at(v), y.start + 13, short(v), "t m") for v in _apart(x, xs)]
    parts += [words(x.start - 5, y.at(v) + 3.5, short(v), "t e") for v in ys]
    parts.append(
        f'<path class="a" d="M{number(x.start)} {number(y.end)}V{number(y.start)}'
        f'H{number(x.end)}"/>'
    )
    parts.append(words((x.start + x.end) / 2, y.start + 28, labels[0], "t m"))
    parts.append(words(11, (y.start + y.end) / 2, labels[1], "t m", turned=True))
    return parts


def _apart(scale: Scale, ticks: Sequence[float]) -> list[float]:
    """Ticks whose labels do not touch."""
    found: list[float] = []
    for tick in ticks:
        if not found or abs(scale.at(tick) - scale.at(found[-1])) >= 26:
            found.append(tick)
    return found


def level(x: Scale, y: Scale, value: float, text: str) -> list[str]:
    """A reference such as chance, across the plot."""
    at = y.at(value)
    above = at - 3 if at - y.end > 10 else at + 10
    return [segment(x.start, at, x.end, at, "v"), words(x.end, above, text, "t e")]


def border(x: Scale, y: Scale, value: float, text: str) -> list[str]:
    """A reference such as the length of training, from the bottom to the top of the plot."""
    at = x.at(value)
    return [segment(at, y.start, at, y.end, "v"), words(at + 4, y.start - 5, text, "t")]
