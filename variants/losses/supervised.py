"""Supervised attention: pulls the weights of aligned words towards a gold alignment.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186; Mi, Wang & Ittycheriah, 2016, "Supervised attentions for neural
machine translation", https://arxiv.org/abs/1608.00112.

Deviations: the sum over aligned words is divided by the number of target tokens, as the negative
log likelihood is; several heads are averaged. By default target words without a link are ignored
and links are not smoothed; `unaligned` and `smoothing` are the papers' alternatives. The null word
is the last key, EOS.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, register
from variants.losses.coverage import per_token, real_keys


@dataclass(frozen=True, kw_only=True)
class SupervisedConfig(Config):
    """Options of supervised attention."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda of a linked target, beside the negative log likelihood of one; dimensionless."""
    distance: Literal["ce", "mul", "mse"] = "ce"
    """Cross entropy (nats), log of the aligned weight (nats), half the squared distance."""
    unaligned: Literal["ignore", "null", "copy_prev", "copy_next"] = "ignore"
    """Target words without a link: left out, linked to the last key, or linked as the nearest
    aligned word before or after; words that have none there are left out."""
    smoothing: float = 0.0
    """Standard deviation of the Gaussian that spreads a link over its neighbors (keys); 0 does
    not."""

    def __post_init__(self) -> None:
        """Check weight and width."""
        if self.weight < 0 or self.smoothing < 0:
            raise InvalidConfig(
                "supervised: weight and smoothing must be at least 0, "
                f"got {self.weight} and {self.smoothing}."
            )


@register(
    "loss",
    "supervised",
    config=SupervisedConfig,
    revision=2,
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
        """Sum over the scored targets that have a link."""
        if inputs.batch.gold is None:
            raise Refused("supervised needs gold alignments, and this batch has none.")
        weights = inputs.trace.weights
        gold, mask = inputs.batch.gold.to(weights.dtype), inputs.batch.mask
        gold = self._fill(torch.where(mask.unsqueeze(2), gold, 0.0), real_keys(inputs))
        if self.config.smoothing > 0:
            gold = smooth(gold, real_keys(inputs), self.config.smoothing)
        aligned = (gold.sum(-1) > 0) & mask
        distance = self._distance(gold, weights)
        total = torch.where(aligned, distance, 0.0).sum()
        return self.config.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Word by word."""
        assert inputs.batch.gold is not None, "supervised needs gold alignments"
        weights, links = inputs.trace.weights[0], inputs.batch.gold[0].tolist()
        total = weights.new_zeros(())
        tiny = torch.finfo(weights.dtype).tiny
        for t, row in enumerate(weights):
            link = self._oracle_link(links, t)
            if link is None:
                continue
            kept = [w if w > tiny else 0 * w + tiny for w in row]
            if self.config.distance == "mse":
                apart = sum(((g - w) ** 2 / 2 for g, w in zip(link, row, strict=True)), 0 * total)
            elif self.config.distance == "mul":
                apart = -torch.log(sum(g * w for g, w in zip(link, row, strict=True)))
            else:
                apart = -sum(g * torch.log(w) for g, w in zip(link, kept, strict=True))
            total = total + self.config.weight * apart
        return total

    def _oracle_link(self, links: list[list[float]], t: int) -> list[float] | None:
        """What a target is linked to, after the options; None where it is left out."""
        found, width = links[t], self.config.smoothing
        if not sum(found) and self.config.unaligned == "null":
            found = [0.0] * (len(found) - 1) + [1.0]
        elif not sum(found) and self.config.unaligned != "ignore":
            back = self.config.unaligned == "copy_prev"
            near = reversed(links[:t]) if back else links[t + 1 :]
            found = next((link for link in near if sum(link)), found)
        if sum(found) and width > 0:
            spread = [
                sum(g * math.exp(-((s - at) ** 2) / (2 * width**2)) for s, g in enumerate(found))
                for at in range(len(found))
            ]
            found = [sum(found) * mass / sum(spread) for mass in spread]
        return found if sum(found) else None

    def _fill(
        self, gold: Float[Tensor, "B T S"], real: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B T S"]:
        """Give target words without a link the link of the option `unaligned`."""
        if self.config.unaligned == "ignore":
            return gold
        if self.config.unaligned == "null":
            place = torch.arange(real.shape[1], device=real.device)
            last = torch.where(real, place, -1).amax(1, keepdim=True)
            null = (place == last).to(gold.dtype)[:, None]
            return torch.where(gold.sum(-1, keepdim=True) > 0, gold, null)
        if self.config.unaligned == "copy_prev":
            return copy_previous(gold)
        return copy_previous(gold.flip(1)).flip(1)

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


def copy_previous(gold: Float[Tensor, "B T S"]) -> Float[Tensor, "B T S"]:
    """Give every row without a link the nearest earlier row that has one."""
    place = torch.arange(gold.shape[1], device=gold.device)
    last = torch.where(gold.sum(-1) > 0, place, 0).cummax(1).values
    return gold.gather(1, last.unsqueeze(2).expand_as(gold))


def smooth(
    gold: Float[Tensor, "B T S"], real: Bool[Tensor, "B S"], deviation: float
) -> Float[Tensor, "B T S"]:
    """Spread links over near keys by a Gaussian; rows keep their sums."""
    place = torch.arange(gold.shape[2], device=gold.device, dtype=gold.dtype)
    near = torch.exp(-0.5 * ((place[:, None] - place) / deviation).square())
    spread = torch.where(real[:, None], gold @ near, 0.0)
    mass = spread.sum(-1, keepdim=True).clamp_min(torch.finfo(gold.dtype).tiny)
    return spread * gold.sum(-1, keepdim=True) / mass
