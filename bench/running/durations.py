"""Durations in words."""


def spoken(seconds: float) -> str:
    """A duration for people.

    >>> spoken(45), spoken(200), spoken(9000)
    ('45 s', '3 min 20 s', '2 h 30 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
