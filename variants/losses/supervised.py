"""Supervised attention: pulls the weights of aligned words towards a gold alignment.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186; Mi, Wang & Ittycheriah, 2016, "Supervised attentions for neural
machine translation", https://arxiv.org/abs/1608.00112.

Deviations: target words without a link are ignored; the term is averaged over aligned words, not
summed; several heads are averaged; gold alignments are not smoothed.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.backbone import Loss, LossInputs
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register


@dataclass(frozen=True, kw_only=True)
class SupervisedConfig(Config):
    """Options of supervised attention."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True)] = 1.0
    """lambda, against the negative log likelihood of one target; dimensionless."""
    distance: Literal["ce", "mul", "mse"] = "ce"
    """Cross entropy (nats), log of the aligned weight (nats), or half the squared distance."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"supervised: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "supervised",
    config=SupervisedConfig,
    citation=Citation(text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186"),
)
class SupervisedLoss(Loss):
    """-sum_s G log w, -log sum_s G w, or sum_s (G - w)^2 / 2, over aligned target words."""

    needs = frozenset({"weights", "gold_alignment"})

    def __init__(self, config: SupervisedConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Mean over the scored targets that have a link."""
        if inputs.batch.gold is None:
            raise Refused("supervised needs gold alignments, and this batch has none.")
        weights = inputs.trace.weights
        gold = inputs.batch.gold.to(weights.dtype)
        aligned = (gold.sum(-1) > 0) & inputs.batch.mask
        distance = self._distance(gold, weights)
        total = torch.where(aligned, distance, 0.0).sum()
        return self.config.weight * total / aligned.sum().clamp(min=1), carry

    def _distance(
        self, gold: Float[Tensor, "B T S"], weights: Float[Tensor, "B T S"]
    ) -> Float[Tensor, "B T"]:
        if self.config.distance == "mse":
            return 0.5 * (gold - weights).square().sum(-1)
        # the smallest normal number keeps the logarithm finite and lets every other weight learn
        floor = torch.finfo(weights.dtype).tiny
        if self.config.distance == "mul":
            return -(gold * weights).sum(-1).clamp_min(floor).log()
        return -(gold * weights.clamp_min(floor).log()).sum(-1)
