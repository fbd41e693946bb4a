"""Weighted sum with dropout of weights in training, independent for each query and head.

Rush, 2018, "The Annotated Transformer", https://aclanthology.org/W18-2509, the function
`attention`; the published code of Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, does so
too, while the paper (section 5.4) names other layers for dropout.

Deviations: losses and attention history see the weights before dropout.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.readouts.weighted_values import weighted_values

KEY = "dropped_sum.key"
"""Stream of noise: whether a key is dropped."""


@dataclass(frozen=True, kw_only=True)
class DroppedSumConfig(Config):
    """Options of dropped weights."""

    share: Annotated[float, FloatRange(0.01, 0.5)] = 0.1
    """Probability that training drops a weight; dimensionless."""

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0 < self.share < 1:
            raise InvalidConfig(
                f"dropped_sum: share must be above 0 and below 1, got {self.share}; "
                "without any it is weighted_sum."
            )


@register(
    "readout",
    "dropped_sum",
    title="Weighted sum with dropout of weights",
    config=DroppedSumConfig,
    citation=Citation(
        text="Rush, 2018", url="https://aclanthology.org/W18-2509", where="function attention"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Dropped weights are part of the published code of the transformer, which Rush explains, "
        "and no gain is reported for them apart. Every batch of this task is new, so that there is "
        "nothing to learn by heart."
    ),
)
class DroppedSum(Readout):
    """sum_s a_s b_s v_s / (1 - p), b_s = 1 with probability 1 - p, else 0; plain outside training.

    Time O(L S E) per head, and a draw for each weight.
    """

    # not `weighted_sum`: fused code would drop nothing
    removes = frozenset({"stream"})
    reads = ("train", "expected")

    def __init__(self, config: DroppedSumConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.share = config.share

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """Drop, make up for it in expectation, and read."""
        if call.read == "train":
            rows, heads, _, num_keys = weights.shape
            draws = call.drawing.uniform(KEY, rows, heads, call.position, num_keys)
            weights = torch.where(draws < self.share, 0.0, weights / (1 - self.share))
        return weighted_values(weights, call.memory.source.value)

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """Key by key."""
        output = torch.zeros_like(one.value[0])
        for s in range(one.num_keys):
            worth = weights[s]
            if one.read == "train":
                assert one.noise is not None, "read='train' needs noise"
                place = torch.tensor([one.position])
                drawn = one.noise.uniform(KEY, one.row + 1, one.head + 1, place, one.num_keys)
                kept = float(drawn[one.row, one.head, 0, s]) >= self.share
                worth = worth / (1 - self.share) if kept else 0 * worth
            output = output + worth * one.value[s]
        return output
