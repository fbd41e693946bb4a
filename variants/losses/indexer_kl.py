"""Indexer loss: an indexer learns to score keys as the attention that it serves weighs them.

DeepSeek-AI, 2025, "DeepSeek-V3.2: pushing the frontier of open large language models",
https://arxiv.org/abs/2512.02556, section 2.1, equations 3 and 4.

Deviations: a mean over queries, not a sum, so that long sequences do not use up the norm at which
gradients are cut. Queries behind the last scored target are left out: no score depends on them.
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
from variants.lightning_indexer import KL
from variants.losses.coverage import per_token


@dataclass(frozen=True, kw_only=True)
class IndexerKlConfig(Config):
    """Options of the loss."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """Against the likelihood; dimensionless."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"indexer_kl: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "indexer_kl",
    config=IndexerKlConfig,
    citation=Citation(
        text="DeepSeek-AI, 2025", url="https://arxiv.org/abs/2512.02556", where="section 2.1"
    ),
)
class IndexerKl(Loss):
    """KL(p || softmax(I)), p the mean of the heads' weights: a mean over queries, summed by layer.

    Rows count by their scored targets. Indexers alone learn from it.
    """

    needs = frozenset({"indexer"})

    def __init__(self, config: IndexerKlConfig) -> None:
        super().__init__(config)
        self.weight = config.weight

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """The mean of each row, times its targets."""
        mask = inputs.batch.mask
        counts = mask.flip(1).cumsum(1).flip(1) > 0
        share = mask.sum(1) / counts.sum(1).clamp(min=1)
        found = [
            (torch.where(counts, attended.terms[KL], 0.0).sum(1) * share).sum()
            for attended in inputs.trace.attended
            if KL in attended.terms
        ]
        if not found:
            raise Refused("indexer_kl needs attention with an indexer; use dsa or csa.")
        total = torch.stack(found).sum()
        return self.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Layer by layer and query by query; all queries of the example are scored."""
        total = inputs.nll.new_zeros(())
        for attended in inputs.trace.attended:
            for apart in attended.terms[KL][0] if KL in attended.terms else ():
                total = total + self.weight * apart
        return total
