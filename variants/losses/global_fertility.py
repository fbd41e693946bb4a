"""Global fertility: the attention of each source word should be likely under a predicted fertility.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural translation
model", https://arxiv.org/abs/1601.01085, section 3.3, equation 11.

Deviations: the loss is off for the first half of the planned training. Trained from the start, the
predictor soon has so little variance that this term outweighs the likelihood. Sources here end in
EOS and have no BOS, so words that are special (ids up to 2) are left out rather than the first and
the last; `leave_out=ends` is the released code's. States are the values that the attention reads.
The sum over the batch is divided by the number of target tokens; several heads are averaged.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.loss import LossInputs, LossSizes
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.losses.coverage import (
    NO_TARGET,
    counted_keys,
    oracle_counted,
    oracle_covered,
    per_token,
    scored_weights,
)
from variants.losses.handed_over import Asked, AskingLoss


@dataclass(frozen=True, kw_only=True)
class GlobalFertilityConfig(Config):
    """Options of global fertility."""

    weight: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """Weight against the negative log likelihood of the target; dimensionless."""
    width: Annotated[int, IntRange(8, 256, log=True)] = 64
    """Hidden units of the predictor."""
    distribution: Literal["normal", "lognormal"] = "normal"
    """Of a fertility, given its state; the released code has the second switched off."""
    start: Annotated[float, FloatRange(0.0, 0.99)] = 0.5
    """Share of training after which the loss is on."""
    leave_out: Literal["special", "ends", "none"] = "special"
    """Keys that do not count: special words, the first and the last, or none."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.weight < 0 or self.width < 1 or not 0 <= self.start <= 1:
            raise InvalidConfig(
                "global_fertility: weight must be at least 0, width at least 1 and start in "
                f"[0, 1], got {self.weight}, {self.width} and {self.start}."
            )


@register(
    "loss",
    "global_fertility",
    config=GlobalFertilityConfig,
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
)
class GlobalFertilityLoss(AskingLoss):
    """-sum_s log N(f_s; m(h_s), v(h_s)) with f_s = sum_t w_ts, and one hidden layer for m and v."""

    needs = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = NO_TARGET

    hidden: nn.Linear
    out: nn.Linear

    def __init__(self, config: GlobalFertilityConfig) -> None:
        super().__init__(config)
        self.config = config

    def asks(self) -> frozenset[Asked]:
        """The states of the source."""
        return frozenset({"values"})

    def attach(self, sizes: LossSizes) -> None:
        """Make the predictor: mean and log variance from a state."""
        self.hidden = nn.Linear(sizes.source, self.config.width)
        self.out = nn.Linear(self.config.width, 2)

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Sum over the keys that count; steps that are not scored have no weight."""
        fertility = scored_weights(inputs).sum(1)
        memory = inputs.trace.memories[0]
        assert memory is not None, "cross attention has a memory"
        if inputs.progress < self.config.start:
            return fertility.new_zeros(()), carry
        state = memory.source.value.transpose(1, 2).flatten(2)
        mean, log_variance = self.out(torch.tanh(self.hidden(state))).unbind(-1)
        nll = self._nll(fertility, mean, log_variance)
        counted = counted_keys(inputs, self.config.leave_out)
        total = torch.where(counted, nll, 0.0).sum()
        return self.config.weight * per_token(total, inputs), carry

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Key by key: minus the logarithm of the density at what it got."""
        covered, total = oracle_covered(inputs), inputs.trace.weights.new_zeros(())
        memory = inputs.trace.memories[0]
        assert memory is not None, "cross attention has a memory"
        if inputs.progress < self.config.start:
            return total
        for place in oracle_counted(inputs, self.config.leave_out):
            state = memory.source.value[0, :, place].flatten()
            hidden = torch.tanh(self.hidden.weight @ state + self.hidden.bias)
            mean, log_variance = self.out.weight @ hidden + self.out.bias
            fertility, variance = covered[place], torch.exp(log_variance)
            scale = torch.ones_like(fertility)
            if self.config.distribution == "lognormal":
                tiny = torch.finfo(fertility.dtype).tiny
                scale = fertility if fertility > tiny else 0 * fertility + tiny
                fertility = torch.log(scale)
            density = torch.exp(-((fertility - mean) ** 2) / (2 * variance))
            density = density / (scale * torch.sqrt(2 * math.pi * variance))
            total = total - self.config.weight * torch.log(density)
        return total

    def _nll(
        self,
        fertility: Float[Tensor, "B S"],
        mean: Float[Tensor, "B S"],
        log_variance: Float[Tensor, "B S"],
    ) -> Float[Tensor, "B S"]:
        volume = torch.zeros_like(fertility)
        if self.config.distribution == "lognormal":
            # the smallest normal number keeps the logarithm of no attention finite
            fertility = fertility.clamp_min(torch.finfo(fertility.dtype).tiny).log()
            volume = fertility
        square = (fertility - mean).square() * torch.exp(-log_variance)
        return volume + 0.5 * (math.log(2 * math.pi) + log_variance + square)


register_recipe(
    "global_fertility",
    Recipe(axes={"score": "additive", "loss": "global_fertility"}, main="loss"),
    module=__name__,
    title="Additive attention with global fertility",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
    default_task=DefaultTask(task="transduction[rule=fert]"),
    does_not_show=(
        "Cohn et al. report gains for real language pairs with little training data. Every "
        "batch of this task is new, and how many words a symbol becomes can be read from the "
        "symbol alone."
    ),
    deviations="those of the loss `global_fertility` and of the additive score.",
)
