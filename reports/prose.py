"""Lists and counts inside sentences."""

from collections.abc import Sequence

MOST_NAMES = 6


def join(texts: Sequence[str], most: int = MOST_NAMES) -> str:
    """Write a list as prose, no more than a sentence can carry.

    >>> join(["a", "b", "c"]), join(["a"]), join(["a", "b", "c"], 1)
    ('a, b and c', 'a', 'a and 2 others')
    """
    shown = [*texts[:most]]
    if len(texts) > most:
        rest = len(texts) - most
        shown.append(f"{rest} other{'s' if rest > 1 else ''}")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
