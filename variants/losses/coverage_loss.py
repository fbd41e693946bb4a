"""Coverage loss: a penalty on attention to keys that earlier steps have covered.

See, Liu & Manning, 2017, "Get to the point: summarization with pointer-generator networks",
https://arxiv.org/abs/1704.04368, section 2.3, equations 12 and 13.

Deviations: the loss is switched on for the last share of training that was planned, where the paper
trains on; training that stops before that never has it. Several heads are averaged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import Loss, LossInputs
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.losses.coverage import NO_TARGET, per_token, scored_weights


@dataclass(frozen=True, kw_only=True)
class CoverageLossConfig(Config):
    """Options of the coverage loss."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """lambda (nats per unit of repeated attention)."""
    start: Annotated[float, FloatRange(0.0, 0.99)] = 0.99
    """Share of training after which the loss is on; the paper trains about 1% longer with it."""

    def __post_init__(self) -> None:
        """Check weight and start."""
        if self.weight < 0 or not 0 <= self.start <= 1:
            raise InvalidConfig(
                "coverage_loss: weight must be at least 0 and start in [0, 1], "
                f"got {self.weight} and {self.start}."
            )


@register(
    "loss",
    "coverage_loss",
    config=CoverageLossConfig,
    citation=Citation(
        text="See et al., 2017", url="https://arxiv.org/abs/1704.04368", where="section 2.3"
    ),
)
class CoverageLoss(Loss):
    """lambda sum_ts min(w_ts, sum of w_us over u < t), averaged over target words."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    def __init__(self, config: CoverageLossConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Padding has no weight, so it repeats nothing."""
        weights = scored_weights(inputs)
        if inputs.progress < self.config.start:
            return weights.new_zeros(()), carry
        before = weights.cumsum(1) - weights
        total = torch.minimum(weights, before).sum()
        return self.config.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Step by step, with what each key has got before."""
        total = inputs.trace.weights.new_zeros(())
        before = [total] * inputs.trace.weights.shape[2]
        for weights in inputs.trace.weights[0]:
            for place, weight in enumerate(weights):
                total = total + self.config.weight * torch.minimum(weight, before[place])
                before[place] = before[place] + weight
        return total if inputs.progress >= self.config.start else 0 * total


register_recipe(
    "coverage_loss",
    Recipe(
        axes={
            "score": "additive",
            "history": "cohn_local_fertility[window=0]",
            "loss": "coverage_loss",
        },
        main="loss",
    ),
    module=__name__,
    title="Additive attention with coverage and its loss",
    citation=Citation(
        text="See et al., 2017", url="https://arxiv.org/abs/1704.04368", where="section 2.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "See et al. report summaries of news (287,000 articles of CNN and the Daily Mail) with a "
        "ROUGE-1 of 39.5, and of 36.4 without it, because they repeat less. Here its mean is "
        "higher, but the seeds do not decide the difference."
    ),
    deviations=(
        "those of the loss `coverage_loss` and of the additive score; the sum is the history "
        "`cohn_local_fertility` with a window of no neighbors, which is the same mathematics. "
        "The paper's pointer-generator is an output of its own."
    ),
)
