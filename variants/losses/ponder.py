"""Ponder cost: a price per hop, so that a query makes only the hops that it needs.

Graves, 2016, "Adaptive computation time for recurrent neural networks",
https://arxiv.org/abs/1603.08983, section 2.1.

Deviations: the mean over scored targets and heads, not the sum over a sequence. Every layer of a
stack pays for its own hops, so that the price grows with the layers.
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


@dataclass(frozen=True, kw_only=True)
class PonderConfig(Config):
    """Options of the ponder cost."""

    weight: Annotated[float, FloatRange(1e-4, 1e-1, log=True), Legal(0)] = 0.01
    """Price of a hop, tau (nats)."""

    def __post_init__(self) -> None:
        """Check the price."""
        if self.weight < 0:
            raise InvalidConfig(f"ponder: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "ponder",
    config=PonderConfig,
    citation=Citation(
        text="Graves, 2016", url="https://arxiv.org/abs/1603.08983", where="section 2.1"
    ),
)
class PonderLoss(Loss):
    """tau (N + p_N), averaged over scored targets."""

    needs = frozenset({"ponder"})
    unsupported = {"self": "a hop belongs to a target, and queries within the source have none."}

    def __init__(self, config: PonderConfig) -> None:
        super().__init__(config)
        self.weight = config.weight

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Add the terms of all slots up that count hops."""
        mask = inputs.batch.mask
        found = [a.terms["ponder"] for a in inputs.trace.attended if "ponder" in a.terms]
        if not found:
            raise Refused("ponder needs a mechanism that counts its hops; use act.")
        cost = torch.where(mask, torch.stack(found).sum(0), 0.0)
        return self.weight * cost.sum() / mask.sum().clamp(min=1), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Slot by slot and word by word."""
        total = inputs.nll.new_zeros(())
        for answer in inputs.trace.attended:
            for hops in answer.terms["ponder"][0] if "ponder" in answer.terms else ():
                total = total + self.weight * hops
        return total
