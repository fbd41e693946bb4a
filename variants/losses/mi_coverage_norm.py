"""Norm of coverage embeddings: at the end of a sentence nothing should be left to translate.

Mi, Sankaran, Wang & Ittycheriah, 2016, "Coverage embedding models for neural machine translation",
https://arxiv.org/abs/1605.03148, section 3.3.

Deviations: the weight is not the paper's. What is left is measured at the query of EOS, after all
words before it have used up their share. The sum over the batch is divided by the number of target
tokens; several heads are averaged.
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


@dataclass(frozen=True, kw_only=True)
class MiCoverageNormConfig(Config):
    """Options of the norm."""

    weight: Annotated[float, FloatRange(1e-3, 1.0, log=True), Legal(0)] = 0.1
    """lambda (nats per unit of norm)."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"mi_coverage_norm: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "mi_coverage_norm",
    config=MiCoverageNormConfig,
    citation=Citation(
        text="Mi et al., 2016", url="https://arxiv.org/abs/1605.03148", where="section 3.3"
    ),
)
class MiCoverageNormLoss(Loss):
    """lambda sum_s |c_s| at the last target word of each sentence."""

    needs = frozenset({"weights", "coverage_embedding"})

    def __init__(self, config: MiCoverageNormConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum of the norms at the last scored step of each row."""
        mask = inputs.batch.mask
        place = torch.arange(mask.shape[1], device=mask.device)
        last = torch.where(mask, place, -1).amax(1, keepdim=True)
        found = [
            answer.terms["coverage_left"]
            for answer in inputs.trace.attended
            if "coverage_left" in answer.terms
        ]
        if not found:
            raise Refused("mi_coverage_norm needs coverage embeddings; use history=mi_coverage.")
        left = torch.stack(found).sum(0)
        total = torch.where(place == last, left, 0.0).sum()
        return self.config.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Slot by slot, what is left at the last word."""
        total = inputs.nll.new_zeros(())
        for answer in inputs.trace.attended:
            if "coverage_left" in answer.terms:
                total = total + self.config.weight * answer.terms["coverage_left"][0, -1]
        return total
