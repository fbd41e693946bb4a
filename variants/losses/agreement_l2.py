"""Squared disagreement: a penalty on two models of opposite directions that align differently.

Cheng et al., 2016, "Agreement-based joint training for bidirectional attention-based neural machine
translation", https://arxiv.org/abs/1512.04650, section 3, with the square of subtraction.

Deviations: words that are special in the bench (padding, BOS, EOS: ids up to 2) are left out of
rows and columns; several heads are averaged. Sources begin with their first word and keep one state
a word, so that position t of one direction's targets is position t of the other's source. The sum
over the batch is divided by the number of target tokens, as the likelihoods are.
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
class AgreementL2Config(Config):
    """Options of the squared disagreement."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per squared unit of attention)."""

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.weight < 0:
            raise InvalidConfig(f"agreement_l2: weight must be at least 0, got {self.weight}.")


@register(
    "joint",
    "agreement_l2",
    config=AgreementL2Config,
    revision=2,
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1512.04650", where="section 3"
    ),
)
class AgreementL2Loss(JointLoss):
    """lambda sum_ts (A_ts - B_st)^2, with A target x source of one direction and B of the other."""

    needs = frozenset({"weights", "reversible_pairs"})

    def __init__(self, config: AgreementL2Config) -> None:
        super().__init__(config)
        self.config = config

    def forward(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """Sum over pairs of words, divided by the number of target tokens."""
        ahead, behind, real = both_ways(there, back)
        apart = torch.where(real, ahead - behind, 0.0)
        return self.config.weight * per_token(apart.square().sum(), there, back)

    def oracle(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """Pair by pair."""
        total = there.trace.weights.new_zeros(())
        for ahead, behind in oracle_pairs(there, back):
            total = total + self.config.weight * (ahead - behind) ** 2
        return total


register_recipe(
    "agreement_l2",
    Recipe(
        axes={"score": "additive"},
        main="direction",
        fixes={"direction": "both[joint=agreement_l2]"},
    ),
    module=__name__,
    title="Joint training with squared disagreement",
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1512.04650", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=swap]"),
    does_not_show=(
        "Cheng et al. report better alignments and translations of Chinese-English and "
        "English-French, for real sentences and a limited number of them. Every batch of this task "
        "is new, so that another view of the same pairs adds little."
    ),
    deviations="those of the joint loss `agreement_l2` and of the additive score.",
)
