"""Which of several variants no other beats in quality and cost at once."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Better = Literal["higher", "lower"]


def pareto_front(points: ArrayLike, better: Sequence[Better]) -> list[bool]:
    """Mark the points that no other point beats in one dimension without losing in another.

    Args:
        points: One line per variant, one column per quantity (quality, time, memory).
        better: Better side of each column.

    Returns:
        True for each point on the front; equal points stay together, a point with a NaN is off.
    """
    table = np.asarray(points, dtype=np.float64).reshape(-1, len(better))
    costs = table * np.array([-1.0 if side == "higher" else 1.0 for side in better])
    return [
        bool(
            not np.isnan(point).any()
            and not ((costs <= point).all(axis=1) & (costs < point).any(axis=1)).any()
        )
        for point in costs
    ]
