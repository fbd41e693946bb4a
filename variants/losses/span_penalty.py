"""Span penalty: a cost on how far back heads read, where they learn it.

Sukhbaatar et al., 2019, "Adaptive attention span in transformers",
https://arxiv.org/abs/1905.07799, section 2.2.

Deviations: the weight suits spans of tens of keys; those of the paper are of thousands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, register
from variants.losses.coverage import per_token

SPAN = "span"
"""Term of a normalizer: the mean span of its heads."""


@dataclass(frozen=True, kw_only=True)
class SpanPenaltyConfig(Config):
    """Options of the penalty."""

    weight: Annotated[float, FloatRange(1e-6, 0.1, log=True), Legal(0)] = 1e-3
    """lambda (nats per key of the span)."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"span_penalty: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "span_penalty",
    config=SpanPenaltyConfig,
    citation=Citation(
        text="Sukhbaatar et al., 2019", url="https://arxiv.org/abs/1905.07799", where="section 2.2"
    ),
)
class SpanPenalty(Loss):
    """lambda / M times the sum of spans, over the M heads of a layer and over layers."""

    needs = frozenset({"spans"})

    def __init__(self, config: SpanPenaltyConfig) -> None:
        super().__init__(config)
        self.weight = config.weight

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over layers; the span of each scored target is that of its layer."""
        found = [
            torch.where(inputs.batch.mask, attended.terms[SPAN], 0.0).sum()
            for attended in inputs.trace.attended
            if SPAN in attended.terms
        ]
        if not found:
            raise Refused("span_penalty needs attention that learns its span; use adaptive_span.")
        total = torch.stack(found).sum()
        return self.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Layer by layer and target by target."""
        total = inputs.nll.new_zeros(())
        for attended in inputs.trace.attended:
            if SPAN in attended.terms:
                for span in attended.terms[SPAN][0]:
                    total = total + self.weight * span
        return total
