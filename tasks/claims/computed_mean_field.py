"""Computed claim on soft attention as the mean field approximation of drawing a source word."""

import math

import torch
from torch import Tensor

from bench.api.metric import Scored
from tasks.claims.places import drawn

KEYS, WIDTH, WORDS = 16, 8, 12
SPREADS = (1e-2, 2e-2)
"""Standard deviations of values, small enough that the third order does not show."""


def mean_field_gaps() -> list[Scored]:
    """Predictions from the mean value against the mean of predictions from each."""
    weights = torch.softmax(drawn(KEYS, 1, 1, seed=1).flatten(), 0)
    readout = drawn(WIDTH, WORDS, 1, seed=2).squeeze(-1)
    values = drawn(KEYS, WIDTH, 1, seed=3).squeeze(-1)

    def linear(x: Tensor) -> Tensor:
        return x @ readout

    def gap(spread: float) -> float:
        """Total variation of the two distributions over words."""
        near = spread * values
        soft = torch.softmax(linear(weights @ near), -1)
        return float((soft - weights @ torch.softmax(linear(near), -1)).abs().sum() / 2)

    small, large = SPREADS
    difference = linear(weights @ values) - weights @ linear(values)
    return [
        Scored(metric="linear_gap", value=float(difference.abs().max())),
        Scored(
            metric="gap_growth_exponent",
            value=math.log(gap(large) / gap(small)) / math.log(large / small),
        ),
    ]
