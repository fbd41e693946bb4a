"""Latency: a penalty on how far monotonic attention reads before it outputs a word.

Arivazhagan et al., 2019, "Monotonic infinite lookback attention for simultaneous machine
translation", https://arxiv.org/abs/1906.05218, section 4 (differentiable average lagging); Ma et
al., 2020, "Monotonic multihead attention", https://arxiv.org/abs/1909.12406, section 2.3, for
several heads.

Both papers add the term of a sentence to its likelihood, which is summed over words. So the sum
over sentences is divided by the number of target tokens, as the likelihood is here and in fairseq.

A penalty on a walk that reads nothing useful yet teaches it to read nothing. So `start` leaves the
loss out at first, as fairseq's option `latency-update-after` does, and `rise` lets its weight grow
in proportion to training. A source of sound has many frames for each word, so the same weight is a
larger penalty there.

Deviations: the softmax over heads and their variance are taken in each layer, then averaged over
layers, not over all heads of all layers at once.
"""

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
from variants.losses.coverage import per_token

HEADS = {"mean": "expected_delay", "leading": "delay_leading"}
"""Terms of a normalizer that join the delays of its heads."""


@dataclass(frozen=True, kw_only=True)
class LatencyConfig(Config):
    """Options of the latency loss."""

    weight: Annotated[float, FloatRange(0.01, 1.0, log=True), Legal(0)] = 0.1
    """lambda of a sentence's average lagging (nats per source token)."""
    heads: Literal["mean", "leading"] = "mean"
    """How delays of heads are joined: the mean, or a softmax mean that favors the longest."""
    variance: Annotated[float, FloatRange(0.0, 1.0)] = 0.0
    """lambda of a sentence's mean variance of delays over heads (nats per squared source token)."""
    start: Annotated[float, FloatRange(0.0, 0.5)] = 0.0
    """Share of training after which the loss is on."""
    rise: Annotated[float, FloatRange(0.0, 0.5)] = 0.0
    """Share of training in which both weights then grow from 0 to what is asked; 0: at once."""

    def __post_init__(self) -> None:
        """Check the weights and their schedule."""
        if self.weight < 0 or self.variance < 0:
            raise InvalidConfig(
                "latency: weight and variance must be at least 0, "
                f"got {self.weight} and {self.variance}."
            )
        if min(self.start, self.rise) < 0 or self.start + self.rise > 1:
            raise InvalidConfig(
                "latency: start and rise must be at least 0 and at most 1 together, "
                f"got {self.start} and {self.rise}."
            )

    def share(self, progress: float) -> float:
        """Share of the weights that counts at this share of training."""
        if progress < self.start:
            return 0.0
        return min(1.0, (progress - self.start) / self.rise) if self.rise else 1.0


@register(
    "loss",
    "latency",
    config=LatencyConfig,
    revision=2,
    citation=Citation(
        text="Arivazhagan et al., 2019", url="https://arxiv.org/abs/1906.05218", where="section 4"
    ),
)
class LatencyLoss(Loss):
    """lambda mean_t (g'_t - (t - 1) S / T), with g'_t = max(g_t, g'_{t-1} + S / T)."""

    needs = frozenset({"delays"})

    def __init__(self, config: LatencyConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over sentences, mean over the slots with monotonic attention."""
        mask = inputs.batch.mask
        count = mask.sum(1).clamp(min=1)
        found = []
        for attended, memory in zip(inputs.trace.attended, inputs.trace.memories, strict=False):
            if memory is None or "expected_delay" not in attended.terms:
                continue
            delay = attended.terms[HEADS[self.config.heads]]
            lag = average_lagging(delay, memory.source.length, mask)
            term = self.config.weight * lag
            if self.config.variance:
                apart = torch.where(mask, attended.terms["delay_variance"], 0.0)
                term = term + self.config.variance * apart.sum(1) / count
            found.append(per_token(term.sum(), inputs))
        if not found:
            raise Refused("latency needs a monotonic normalizer; use milk, mocha or mma.")
        return self.config.share(inputs.progress) * torch.stack(found).mean(), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Slot by slot and word by word, from the definition of the lagging."""
        slots = [
            (attended.terms, memory.num_keys)
            for attended, memory in zip(inputs.trace.attended, inputs.trace.memories, strict=False)
            if memory is not None and "expected_delay" in attended.terms
        ]
        total = inputs.nll.new_zeros(())
        for terms, num_keys in slots:
            delays = list(terms[HEADS[self.config.heads]][0])
            pace, before = num_keys / len(delays), None
            for t, delay in enumerate(delays):
                lagged = delay if before is None or delay > before + pace else before + pace
                cost = self.config.weight * (lagged - t * pace)
                cost = cost + self.config.variance * terms["delay_variance"][0, t]
                total = total + cost / (len(delays) * len(slots))
                before = lagged
        since = inputs.progress - self.config.start
        if since < 0:
            return 0 * total
        return total * since / self.config.rise if since < self.config.rise else total


def average_lagging(
    delay: Float[Tensor, "B T"], length: Tensor, mask: Bool[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Differentiable average lagging of every row, in source tokens; zero without a target."""
    count = mask.sum(1).clamp(min=1)
    pace = (length.to(delay.dtype) / count).unsqueeze(1)
    ideal = pace * torch.arange(delay.shape[1], device=delay.device)
    # g'_t less the ideal pace is the running maximum of g_t less the ideal pace
    behind = (delay - ideal).cummax(1).values
    return torch.where(mask, behind, 0.0).sum(1) / count
