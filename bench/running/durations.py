"""Durations in words."""

MINUTES_ALONE_FROM = 600
"""Seconds; of a longer time nobody needs the seconds."""


def spoken(seconds: float) -> str:
    """A duration for people.

    >>> spoken(45), spoken(200), spoken(2279), spoken(9000)
    ('45 s', '3 min 20 s', '38 min', '2 h 30 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < MINUTES_ALONE_FROM:
        return _both(whole, 60, "min", "s")
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 60 else _both(minutes, 60, "h", "min")


def _both(whole: int, size: int, large: str, small: str) -> str:
    """A duration in two units, without the smaller one where it is zero."""
    rest = f" {whole % size} {small}" if whole % size else ""
    return f"{whole // size} {large}{rest}"
