"""Names beside what they name, none over another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.figures.svg import segment, width_of, words

HEIGHT = 12.0
"""Of a line of text (pixels)."""
BOLD = 1.1
"""How much wider bold letters are."""
_AROUND = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))


@dataclass(frozen=True)
class Box:
    """A rectangle (pixels)."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether the two have a place in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def inside(self, other: "Box") -> bool:
        """Whether all of it lies in the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True)
class Tag:
    """A point and its name."""

    x: float
    y: float
    text: str
    css: str = ""


def place(
    tags: Sequence[Tag], area: Box, taken: Sequence[Box] = (), thin: Sequence[Box] = ()
) -> dict[int, Box]:
    """Find a free place for each name near its point, the first names first.

    Args:
        tags: Points with names; those that come first get the best places.
        area: Where names may stand.
        taken: What no name may cover, beside the points of `tags`.
        thin: Lines that a name covers only where it has no other place.

    Returns:
        Places by number of the tag; a name without a free place is not there.

    """
    marks = [Box(tag.x - 4, tag.y - 4, tag.x + 4, tag.y + 4) for tag in tags]
    used = [*taken, *marks]
    found: dict[int, Box] = {}
    for number, tag in enumerate(tags):
        inside = [box for box in _candidates(tag) if box.inside(area)]
        free = [box for box in inside if not any(map(box.meets, used))]
        clear = [box for box in free if not any(map(box.meets, thin))]
        if free:
            found[number] = (clear or free)[0]
            used.append(found[number])
    return found


def _candidates(tag: Tag) -> Iterator[Box]:
    """Places around a point, near ones first."""
    wide = width_of(tag.text) * (BOLD if tag.css else 1.0)
    for gap in (6.0, 14.0, 24.0, 36.0, 50.0):
        for across, down in _AROUND:
            x = tag.x + across * gap - (wide if across < 0 else wide / 2 if across == 0 else 0)
            y = tag.y + down * gap - (HEIGHT if down < 0 else HEIGHT / 2 if down == 0 else 0)
            yield Box(x, y, x + wide, y + HEIGHT)


def drawn(tag: Tag, box: Box) -> list[str]:
    """A name at its place, with a thin line to its point where it stands apart."""
    parts = [words(box.left, box.bottom - 2.5, tag.text, tag.css)]
    near = (min(max(tag.x, box.left), box.right), min(max(tag.y, box.top), box.bottom))
    away = max(abs(near[0] - tag.x), abs(near[1] - tag.y))
    if away > 9:
        parts.append(segment(tag.x, tag.y, *near, "d"))
    return parts


def spread(wanted: Sequence[float], low: float, high: float, gap: float = HEIGHT) -> list[float]:
    """Places of lines of text that are near the wanted ones and at least a gap apart.

    >>> spread([10.0, 11.0, 50.0], 0.0, 100.0)
    [4.5, 16.5, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    groups: list[tuple[float, int]] = []  # middle of the group, and how many are in it
    for at in order:
        middle, count = min(max(wanted[at], low), high), 1
        while (
            groups
            and middle - (count - 1) * gap / 2 < groups[-1][0] + (groups[-1][1] + 1) * gap / 2
        ):
            before, others = groups.pop()
            middle = (before * others + middle * count) / (others + count)
            count += others
            half = (count - 1) * gap / 2
            middle = max(low + half, min(high - half, middle))
        groups.append((middle, count))
    places = [
        middle + (n - (count - 1) / 2) * gap for middle, count in groups for n in range(count)
    ]
    found = [0.0] * len(wanted)
    for at, where in zip(order, places, strict=True):
        found[at] = where
    return found
