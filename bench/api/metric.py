"""A metric: what a number is, and the values that tasks and probes give of it."""

from dataclasses import dataclass
from typing import Literal

Side = Literal["higher", "lower", "none"]
"""Which values are better."""
Group = Literal["quality", "speed", "memory", "size", "diagnostic"]

MARGIN = 0.05
"""Share of the range of a metric that is too small a difference to choose by."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What a number is: its name, unit, range and better side."""

    name: str
    title: str
    unit: str
    low: float | None
    """Least value that it can have; None where nothing bounds it."""
    high: float | None
    """Greatest value that it can have; None where nothing bounds it."""
    better: Side
    group: Group = "quality"
    margin: float | None = None
    """Largest difference without practical meaning, in its unit, > 0; None for 5% of the range.

    Two variants whose difference is shown to lie inside the margin are equivalent. Another
    processor moves an accuracy by up to 0.06 at the sizes of this bench (docs/measurements.md).
    """

    @property
    def declared_margin(self) -> float | None:
        """The margin, or 5% of the range; None where the range has no ends and nobody said."""
        if self.margin is not None or self.low is None or self.high is None:
            return self.margin
        return MARGIN * (self.high - self.low)


AVERAGE_LAGGING = Metric(
    name="average_lagging",
    title="Average lagging",
    unit="source tokens",
    low=None,
    high=None,
    better="lower",
    group="diagnostic",
)
AVERAGE_PROPORTION = Metric(
    name="average_proportion",
    title="Average proportion read",
    unit="fraction of the source",
    low=0.0,
    high=1.0,
    better="lower",
    group="diagnostic",
)
DELAYS = (AVERAGE_LAGGING, AVERAGE_PROPORTION)
"""Given by tasks that answer word by word, where attention says how far it has read; no task
declares them, for most attention reads everything and says nothing."""


SELECTION_MATCH = Metric(
    name="selection_match",
    title="Selected tokens that are aligned",
    unit="fraction of selected tokens",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)
SELECTED_PROPORTION = Metric(
    name="selected_proportion",
    title="Selected tokens",
    unit="fraction of source tokens",
    low=0.0,
    high=1.0,
    better="none",
    group="diagnostic",
)
SELECTIONS = (SELECTION_MATCH, SELECTED_PROPORTION)
"""Given by tasks with gold alignments where an encoder selects tokens; like the delays, no task
declares them."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One value of one metric, possibly at a place on an axis."""

    metric: str
    value: float
    axis: str = ""
    x: float | None = None
