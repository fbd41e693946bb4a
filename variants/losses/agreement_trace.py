"""Trace bonus: a reward for two models of opposite directions that align the same words.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, on bidirectional training.

Deviations: words that are special in the bench (padding, BOS, EOS: ids up to 2) are left out of
rows and columns; several heads are averaged. Sources begin with their first word and keep one state
a word, so that position t of one direction's targets is position t of the other's source. As in the
released code gamma is 0.1 beside likelihoods that are summed over words; here both are divided by
the number of target tokens.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import JointLoss, LossInputs
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.losses.both_directions import both_ways, oracle_pairs, per_token


@dataclass(frozen=True, kw_only=True)
class AgreementTraceConfig(Config):
    """Options of the trace bonus."""

    gamma: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 0.1
    """Weight of the bonus (nats per agreed word)."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.gamma < 0:
            raise InvalidConfig(f"agreement_trace: gamma must be at least 0, got {self.gamma}.")


@register(
    "joint",
    "agreement_trace",
    config=AgreementTraceConfig,
    revision=2,
    citation=Citation(text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085"),
)
class AgreementTraceLoss(JointLoss):
    """-gamma tr(A B), with A target x source of one direction and B of the other."""

    needs = frozenset({"weights", "reversible_pairs"})

    def __init__(self, config: AgreementTraceConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """Element by element: the product of the two matrices is never formed."""
        ahead, behind, real = both_ways(there, back)
        agreed = torch.where(real, ahead * behind, 0.0)
        return -self.config.gamma * per_token(agreed.sum(), there, back)

    def oracle(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """Pair by pair."""
        total = there.trace.weights.new_zeros(())
        for ahead, behind in oracle_pairs(there, back):
            total = total - self.config.gamma * ahead * behind
        return total


register_recipe(
    "agreement_trace",
    Recipe(
        axes={"score": "additive"},
        main="direction",
        fixes={"direction": "both[joint=agreement_trace]"},
    ),
    module=__name__,
    title="Joint training with the trace bonus",
    citation=Citation(text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085"),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=swap]"),
    does_not_show=(
        "Cohn et al. report gains for real language pairs with little training data. Every "
        "batch of this task is new, so that another view of the same pairs adds little."
    ),
    deviations="those of the joint loss `agreement_trace` and of the additive score.",
)
