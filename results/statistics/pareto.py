"""Which of several variants no other beats in quality and cost at once."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Better = Literal["higher", "lower"]


def pareto_front(
    points: ArrayLike, better: Sequence[Better], factors: Sequence[float] | None = None
) -> list[bool]:
    """Mark the points that no other point beats in one dimension without losing in another.

    Args:
        points: One line per variant, one column per quantity (quality, time, memory).
        better: Better side of each column.
        factors: By how much two values of each column differ at least, as a factor: within 1.3
            noise alone may be the difference. Then the column is positive. 1 for all if None.

    Returns:
        True for each point on the front; equal points stay together, a point with a NaN is off.
    """
    table = np.asarray(points, dtype=np.float64).reshape(-1, len(better))
    costs = table * np.array([-1.0 if side == "higher" else 1.0 for side in better])
    least = np.asarray(factors if factors is not None else np.ones(len(better)))
    # a higher value is a lower cost below 0, which a factor brings nearer to 0
    less = np.where(np.array(better) == "higher", 1 / least, least)
    return [
        bool(
            not np.isnan(point).any()
            and not ((costs <= point * less).all(axis=1) & (costs * less < point).any(axis=1)).any()
        )
        for point in costs
    ]
