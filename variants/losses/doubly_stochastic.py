"""Doubly stochastic attention: every key should get total weight one over the whole target.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.2.1, equation 14.

Deviations: the sum over the batch is divided by the number of target tokens, as the negative log
likelihood is; several heads are averaged. With `target=ratio` each key should get T/S instead of
one, which T steps can give to S keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.losses.coverage import (
    NO_TARGET,
    oracle_covered,
    per_token,
    real_keys,
    scored_weights,
)


@dataclass(frozen=True, kw_only=True)
class DoublyStochasticConfig(Config):
    """Options of doubly stochastic attention."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per squared unit of attention)."""
    target: Annotated[Literal["one", "ratio"], Choices(("one", "ratio"))] = "one"
    """Attention that each key should get: one, or target length over source length."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"doubly_stochastic: weight must be at least 0, got {self.weight}.")


@register(
    "loss",
    "doubly_stochastic",
    config=DoublyStochasticConfig,
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.2.1"
    ),
)
class DoublyStochasticLoss(Loss):
    """lambda sum_s (1 - sum_t w_ts)^2 over the keys of each source."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    def __init__(self, config: DoublyStochasticConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over real keys; steps that are not scored have no weight."""
        real = real_keys(inputs)
        covered = scored_weights(inputs).sum(1)
        wanted = torch.ones_like(covered)
        if self.config.target == "ratio":
            steps, keys = inputs.batch.mask.sum(1), real.sum(1).clamp(min=1)
            wanted = (steps.to(covered.dtype) / keys)[:, None].expand_as(covered)
        missing = torch.where(real, wanted - covered, 0.0)
        return self.config.weight * per_token(missing.square().sum(), inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Key by key."""
        covered, total = oracle_covered(inputs), inputs.trace.weights.new_zeros(())
        ratio = inputs.batch.targets.shape[1] / len(covered)
        wanted = ratio if self.config.target == "ratio" else 1.0
        for got in covered:
            total = total + self.config.weight * (wanted - got) ** 2
        return total


register_recipe(
    "doubly_stochastic",
    Recipe(axes={"score": "additive", "loss": "doubly_stochastic"}, main="loss"),
    module=__name__,
    title="Additive attention, doubly stochastic",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.2.1"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations="those of the loss `doubly_stochastic` and of the additive score.",
    does_not_show=(
        "Xu et al. report richer captions of real pictures (Flickr8k with 8,000 of them, Flickr30k "
        "with 30,000, and MS COCO). This task is scored up to the first error in strings longer "
        "than those of training, and a loss in training tells attention by content nothing about "
        "places that it has not seen."
    ),
)
