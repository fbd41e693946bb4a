"""Say in one sentence what is paid for; here the entropy of the weights.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.loss import Loss, LossInputs
from bench.api.registry import DefaultTask, register


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    weight: Annotated[float, FloatRange(0.001, 1.0, log=True)] = 0.01
    """Price of a nat of entropy (nats)."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight <= 0:
            raise InvalidConfig(f"new_name: weight must be above 0, got {self.weight}.")


@register(
    "loss",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameLoss(Loss):
    """-c sum_s a_s log a_s, averaged over scored targets; a_s is a mean over heads."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "self": "entropy is that of a target's weights, and queries within the source have none",
        "pool": "entropy is that of a target's weights, and pooling has no targets",
    }

    def __init__(self, config: NewNameConfig) -> None:
        super().__init__(config)
        self.weight = config.weight

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Mean over the targets of the batch; nothing is carried."""
        weights, mask = inputs.trace.weights, inputs.batch.mask
        # A hidden key's weight is zero, where the slope of the logarithm is infinite.
        seen = torch.where(weights > 0, weights, 1.0)
        entropy = -(seen * torch.log(seen)).sum(-1)
        return self.weight * entropy[mask].sum() / mask.sum().clamp(min=1), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """One example, weight by weight (nats, not divided by its targets)."""
        total = inputs.trace.weights.new_zeros(())
        for weight in inputs.trace.weights[0].flatten():
            if weight > 0:
                total = total - self.weight * weight * torch.log(weight)
        return total
