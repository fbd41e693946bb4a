"""Quantity loss: the stops of a monotonic walk should have as much weight as there are words.

Inaguma & Kawahara, 2021, "StableEmit: selection probability discount for reducing emission latency
of streaming monotonic attention ASR", https://arxiv.org/abs/2107.00635, which takes it from Inaguma
et al., 2020, "Minimum latency training strategies for streaming sequence-to-sequence ASR",
https://arxiv.org/abs/2004.05009. The term of a sentence is added to its likelihood, which is summed
over words, so the sum over sentences is divided by the number of target tokens, as the likelihood
is here. The end of a sentence counts as a word, and so wants weight behind the last one, where a
source may have nothing left to read; `end=false` leaves it out.

Deviations: several heads are averaged. Where a walk that runs off the end reads the last key
(`end=last`), no weight is ever missing and the term is zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import LossInputs
from bench.api.registry import Citation, register
from variants.losses.coverage import LAST_SPECIAL as EOS
from variants.losses.coverage import NO_TARGET, per_token, scored_weights
from variants.losses.handed_over import Asked, AskingLoss
from variants.precision import wide_format

NOTHING = 1e-5
"""Missing weight (words) that counts as none: sums of weights in float32 round by this much."""


@dataclass(frozen=True, kw_only=True)
class QuantityConfig(Config):
    """Options of the quantity loss."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per unit of missing weight)."""
    end: bool = True
    """Whether the end of a sentence counts as a word."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"quantity: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "quantity",
    config=QuantityConfig,
    citation=Citation(
        text="Inaguma & Kawahara, 2021", url="https://arxiv.org/abs/2107.00635", where="section 3"
    ),
)
class QuantityLoss(AskingLoss):
    """lambda |T - sum_ts w_ts| of each sentence of T target tokens that count."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    def __init__(self, config: QuantityConfig) -> None:
        super().__init__(config)
        self.config = config

    def asks(self) -> frozenset[Asked]:
        """Which targets end a sentence, where those are left out."""
        return frozenset() if self.config.end else frozenset({"targets"})

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over sentences; steps that do not count neither have weight nor want any."""
        counted = inputs.batch.mask
        if not self.config.end:
            counted = counted & (inputs.batch.targets != EOS)
        given = scored_weights(inputs).masked_fill(~counted.unsqueeze(2), 0).sum((1, 2))
        missing = counted.sum(1) - given
        # where nothing is missing, rounding alone would decide which way the gradient points
        nothing = NOTHING + counted.sum(1) * _rounding(inputs.trace.weights.dtype)
        missing = torch.where(missing.abs() < nothing, 0.0, missing).abs()
        return self.config.weight * per_token(missing.sum(), inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Word by word and key by key."""
        missing = inputs.trace.weights.new_zeros(())
        for target, weights in zip(
            inputs.batch.targets[0].tolist(), inputs.trace.weights[0], strict=True
        ):
            if target == EOS and not self.config.end:
                continue
            missing = missing + 1
            for weight in weights:
                missing = missing - weight
        left = float(missing.detach())
        if abs(left) < NOTHING:
            return torch.zeros_like(missing)
        return self.config.weight * (missing if left > 0 else -missing)


def _rounding(dtype: torch.dtype) -> float:
    """Most that rounding to a narrow format takes from the weights of a word (words).

    Each weight loses up to eps/2 of itself, and as much again as a mean of heads.
    """
    return 0.0 if dtype == wide_format(dtype) else torch.finfo(dtype).eps
