"""Coverage of one: every source word should get total weight one over the whole target.

The penalty of Xu et al., 2015, https://arxiv.org/abs/1502.03044, equation 14, as in the released
code of Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085: the ends of the source are left out.

Deviations: sources here end in EOS and have no BOS, so words that are special (ids up to 2) are
left out rather than the first and the last; `leave_out=ends` is the released code's. The sum over
the batch is divided by the number of target tokens; several heads are averaged.
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
class CoverageEq1Config(Config):
    """Options of the penalty."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per squared unit of attention)."""
    leave_out: Literal["special", "ends", "none"] = "special"
    """Keys that do not count: special words, the first and the last, or none."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"coverage_eq1: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "coverage_eq1",
    config=CoverageEq1Config,
    citation=Citation(text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085"),
)
class CoverageEq1Loss(Loss):
    """lambda sum_s (1 - sum_t w_ts)^2 over the words of each source."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    def __init__(self, config: CoverageEq1Config) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over the keys that count; steps that are not scored have no weight."""
        covered = scored_weights(inputs).sum(1)
        counted = counted_keys(inputs, self.config.leave_out)
        missing = torch.where(counted, 1 - covered, 0.0)
        return self.config.weight * per_token(missing.square().sum(), inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Key by key."""
        covered, total = oracle_covered(inputs), inputs.trace.weights.new_zeros(())
        for place in oracle_counted(inputs, self.config.leave_out):
            total = total + self.config.weight * (1 - covered[place]) ** 2
        return total


register_recipe(
    "coverage_eq1",
    Recipe(axes={"score": "additive", "loss": "coverage_eq1"}, main="loss"),
    module=__name__,
    title="Additive attention, coverage of one",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="released code"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations="those of the loss `coverage_eq1` and of the additive score.",
    does_not_show=(
        "Cohn et al. and Xu et al. report fewer words that are left out or said twice, in "
        "translations with little training data and in captions of real pictures (Flickr8k with "
        "8,000 of them, Flickr30k with 30,000, and MS COCO). This task is scored up to the first "
        "error in strings longer than those of training, and a loss in training tells attention by "
        "content nothing about places that it has not seen."
    ),
)
