"""Arg-max value: only the value of the heaviest key, whatever its weight.

No paper: the weighted sum when one key has all the weight; the gradient is the straight-through
estimator of Bengio, Leonard & Courville, 2013, "Estimating or propagating gradients through
stochastic neurons for conditional computation", https://arxiv.org/abs/1308.3432.

Deviations: the estimator is applied to a choice that is not sampled. In training the answer is the
same and its gradient is that of the weighted sum; `gradient=none` has none, so that scores never
learn.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.normalizers.best_key import one_hot_best, oracle_best
from variants.readouts.weighted_values import weighted_values

Gradient = Literal["straight_through", "none"]


@dataclass(frozen=True, kw_only=True)
class MaxConfig(Config):
    """Options of the arg-max value."""

    gradient: Annotated[Gradient, Choices(("straight_through", "none"))] = "straight_through"
    """What weights learn from in training: the weighted sum, or nothing."""


@register(
    "readout",
    "max",
    config=MaxConfig,
    citation=Citation(text="Bengio et al., 2013", url="https://arxiv.org/abs/1308.3432"),
)
class MaxValue(Readout):
    """v at the first of the heaviest keys, zero where all weights are; time O(L S E) per head."""

    gives = frozenset({"jumps"})
    removes = frozenset({"stream"})

    def __init__(self, config: MaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.straight_through = config.gradient == "straight_through"

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """A one-hot product, which costs what the sum costs."""
        best = one_hot_best(weights, allowed) * (weights.detach() != 0).any(-1, keepdim=True)
        if self.straight_through and call.read == "train":
            # the difference is exactly zero, hence the answer exactly the value
            best = best + (weights - weights.detach())
        return weighted_values(best.to(weights.dtype), call.memory.source.value)

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """The value at the end of one search."""
        best = oracle_best(weights, allowed)
        if all(float(weight.detach()) == 0 for weight in weights):
            return torch.zeros_like(one.value[0])
        return one.value[int(best.argmax())]
