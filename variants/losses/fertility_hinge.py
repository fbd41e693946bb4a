"""Fertility hinge: a penalty on source words that get more attention than a limit.

The training-time form of a decoding heuristic that goes back to the coverage vectors of
phrase-based search: Wu et al., 2016, "Google's neural machine translation system",
https://arxiv.org/abs/1609.08144, section 7, penalizes too little coverage, this one too much.

Deviations: no paper has exactly this term. The limit is the same for every word. The sum over the
batch is divided by the number of target tokens; several heads are averaged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.losses.coverage import (
    NO_TARGET,
    counted_keys,
    oracle_counted,
    oracle_covered,
    per_token,
    scored_weights,
)


@dataclass(frozen=True, kw_only=True)
class FertilityHingeConfig(Config):
    """Options of the hinge."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per squared unit of attention)."""
    limit: Annotated[float, FloatRange(1.0, 5.0), Legal(0)] = 2.0
    """Attention that costs nothing, F_max (target words per key)."""
    leave_out: Literal["special", "ends", "none"] = "special"
    """Keys that do not count: special words, the first and the last, or none."""

    def __post_init__(self) -> None:
        """Check weight and limit."""
        if self.weight < 0 or self.limit < 0:
            raise InvalidConfig(
                "fertility_hinge: weight and limit must be at least 0, "
                f"got {self.weight} and {self.limit}."
            )


@register(
    "loss",
    "fertility_hinge",
    config=FertilityHingeConfig,
    citation=Citation(
        text="after Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
)
class FertilityHingeLoss(Loss):
    """lambda sum_s max(0, sum_t w_ts - F_max)^2 over the words of each source."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    def __init__(self, config: FertilityHingeConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over the keys that count; steps that are not scored have no weight."""
        over = (scored_weights(inputs).sum(1) - self.config.limit).clamp(min=0)
        counted = counted_keys(inputs, self.config.leave_out)
        total = torch.where(counted, over, 0.0).square().sum()
        return self.config.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Key by key."""
        covered, total = oracle_covered(inputs), inputs.trace.weights.new_zeros(())
        for place in oracle_counted(inputs, self.config.leave_out):
            over = covered[place] - self.config.limit
            if over > 0:
                total = total + self.config.weight * over**2
        return total


register_recipe(
    "fertility_hinge",
    Recipe(axes={"score": "additive", "loss": "fertility_hinge"}, main="loss"),
    module=__name__,
    title="Additive attention, limited coverage",
    citation=Citation(
        text="after Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations="those of the loss `fertility_hinge` and of the additive score.",
    does_not_show=(
        "No paper reports this term, so no advantage is claimed; Wu et al. use such a term to "
        "choose among finished translations. This task is scored up to the first error in strings "
        "longer than those of training, and a loss in training tells attention by content nothing "
        "about places that it has not seen."
    ),
)
