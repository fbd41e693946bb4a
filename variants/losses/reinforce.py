"""REINFORCE: samples become likelier in proportion to their reward above a baseline.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.1; the estimator is that of Williams, 1992. Baselines:
the paper's moving average, none, a learned value (Mnih & Gregor, 2014,
https://arxiv.org/abs/1402.0030, section 2.2), and the other draws of the same example (Kool, van
Hoof & Welling, 2019, https://openreview.net/forum?id=r1lgTGL5DE).

Deviations: the surrogate is divided by the number of target tokens, as the negative log likelihood
is. The baseline starts at zero, as in the authors' code. The learned value sees the decoder state
before a draw, never the one after, and corrects the moving average in units of its spread. Draws of
steps that are not scored count up to the last scored one, whose answer a stack may owe to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs, LossSizes
from bench.api.registry import Citation, register
from bench.api.trace import Trace
from variants.losses.handed_over import Asked, AskingLoss

VALUE_UNITS = 32
"""Hidden units of the learned value."""
LEAST_SPREAD = 1e-3
"""Least spread of rewards around their mean (nats), as a divisor."""


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(Config):
    """Options of the REINFORCE loss."""

    weight: Annotated[float, FloatRange(0.01, 1.0, log=True), Legal(0)] = 0.1
    """lambda_r, weight of the reward term; dimensionless."""
    entropy: Annotated[float, FloatRange(1e-4, 0.1, log=True), Legal(0)] = 0.002
    """lambda_e, reward for the entropy of the weights (nats per nat)."""
    reward: Literal["sequence", "rest", "token"] = "sequence"
    """Log likelihood that is the reward of a draw: of all targets, of those from its own on, or of
    its own. The last is unbiased only where later states do not depend on the draw."""
    baseline: Literal["moving_average", "none", "learned", "leave_one_out"] = "moving_average"
    """What is subtracted from the reward: its running mean, nothing, a value read off the decoder
    state before the draw, or the mean reward of the example's other draws."""
    decay: Annotated[float, FloatRange(0.5, 0.999), Legal(0)] = 0.9
    """Share of the running mean that a step keeps."""
    samples: Annotated[int, IntRange(2, 16)] = 4
    """M, draws of each example in a batch under `baseline=leave_one_out`; others take one."""

    def __post_init__(self) -> None:
        """Check weights, decay and samples."""
        if self.weight < 0 or self.entropy < 0:
            raise InvalidConfig(
                "reinforce: weight and entropy must be at least 0, "
                f"got {self.weight} and {self.entropy}."
            )
        if not 0 <= self.decay < 1:
            raise InvalidConfig(f"reinforce: decay must be in [0, 1), got {self.decay}.")
        if self.samples < 2:
            raise InvalidConfig(f"reinforce: samples must be at least 2, got {self.samples}.")


@register(
    "loss",
    "reinforce",
    config=ReinforceConfig,
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.1"
    ),
)
class ReinforceLoss(AskingLoss):
    """-lambda_r stop(R - b) log p(z) - lambda_e H, with R the log likelihood of the targets."""

    gives = frozenset({"loss:reinforce"})
    unsupported = {"self": "a reward belongs to a target, and queries within the source have none."}

    def __init__(self, config: ReinforceConfig) -> None:
        super().__init__(config)
        self.config = config
        self.copies = config.samples if config.baseline == "leave_one_out" else 1
        self.value: nn.Module | None = None

    def asks(self) -> frozenset[Asked]:
        """The reward, and what a learned value is read off."""
        if self.config.baseline == "learned":
            return frozenset({"nll", "states"})
        return frozenset({"nll"})

    def attach(self, sizes: LossSizes) -> None:
        """Make the value, where it is learned."""
        if self.config.baseline == "learned":
            self.value = nn.Sequential(
                nn.Linear(sizes.states + sizes.embedded, VALUE_UNITS),
                nn.Tanh(),
                nn.Linear(VALUE_UNITS, 1),
            )

    def init(self) -> dict[str, Tensor]:
        """The running mean of the reward; for a value also how far from it rewards are (nats)."""
        carry = {"baseline": torch.zeros(())}
        return {**carry, "spread": torch.ones(())} if self.value is not None else carry

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Steps that are not scored give no reward; their draws may earn that of later ones."""
        count = inputs.batch.mask.sum().clamp(min=1)
        reward = self._reward(inputs)
        baseline, fit = self._baseline(inputs, reward, carry)
        gain = self.config.weight * (reward - baseline) * _summed(inputs, "log_prob")
        gain = gain + self.config.entropy * _summed(inputs, "entropy")
        term = torch.where(self._rewarded(inputs), fit - gain, 0.0).sum() / count
        return term, self._next(carry, reward, inputs)

    def oracle(self, inputs: LossInputs, carry: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        """Draw by draw and word by word; the reward is a number, whatever it depends on."""
        total, rows = inputs.nll.new_zeros(()), range(inputs.copies)
        states, embedded = inputs.trace.states.detach(), inputs.trace.embedded.detach()
        for row in rows:
            for t in range(inputs.nll.shape[1]):
                reward, fit = self._oracle_reward(inputs, row, t), torch.zeros_like(total)
                if self.config.baseline == "moving_average":
                    reward = reward - float(carry["baseline"])
                elif self.config.baseline == "leave_one_out":
                    others = [self._oracle_reward(inputs, o, t) for o in rows if o != row]
                    reward = reward - sum(others) / len(others)
                elif self.value is not None:
                    before = states[row, t - 1] if t else torch.zeros_like(states[row, 0])
                    value = self.value(torch.cat((before, embedded[row, t])))[0]
                    mean, spread = float(carry["baseline"]), float(carry["spread"])
                    off = value - (reward - mean) / spread
                    fit = abs(off) - 0.5 if abs(off) > 1 else off**2 / 2
                    reward = reward - (mean + spread * float(value.detach()))
                for answer in inputs.trace.attended:
                    if "log_prob" in answer.terms:
                        drawn = self.config.weight * reward * answer.terms["log_prob"][row, t]
                        total = total - drawn
                        total = total - self.config.entropy * answer.terms["entropy"][row, t]
                total = total + fit
        return total

    def _oracle_reward(self, inputs: LossInputs, row: int, t: int) -> float:
        """Log likelihood that a draw is rewarded with (nats)."""
        costs = inputs.nll[row].tolist()
        seen = {"sequence": costs, "rest": costs[t:], "token": costs[t : t + 1]}
        return -sum(seen[self.config.reward])

    def _rewarded(self, inputs: LossInputs) -> Bool[Tensor, "B T"]:
        """Steps whose draws a scored answer may depend on, its own or a later one."""
        mask = inputs.batch.mask
        if self.config.reward == "token":
            return mask
        return mask.flip(1).cumsum(1).flip(1) > 0

    def _reward(self, inputs: LossInputs) -> Float[Tensor, "B T"]:
        mask = inputs.batch.mask
        reward = torch.where(mask, -inputs.nll.detach(), 0.0)
        if self.config.reward == "sequence":
            return reward.sum(1, keepdim=True).expand_as(reward)
        if self.config.reward == "rest":
            return reward.flip(1).cumsum(1).flip(1)
        return reward

    def _baseline(
        self, inputs: LossInputs, reward: Float[Tensor, "B T"], carry: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """What to subtract, and what a learned value is fitted by."""
        nothing = torch.zeros_like(reward)
        if self.config.baseline == "none":
            return nothing, nothing
        if self.config.baseline == "leave_one_out":
            return _others(reward, inputs.copies), nothing
        mean = carry["baseline"].to(reward)
        if self.value is None:
            return mean.expand_as(reward), nothing
        spread = carry["spread"].to(reward)
        value = self.value(_before(inputs.trace)).squeeze(-1)
        # bounded gradients, so that the value's do not crowd the network's out when clipped
        fit = functional.smooth_l1_loss(value, (reward - mean) / spread, reduction="none")
        return mean + spread * value.detach(), fit

    def _next(
        self, carry: dict[str, Tensor], reward: Float[Tensor, "B T"], inputs: LossInputs
    ) -> dict[str, Tensor]:
        """Running means over sentences, or over draws where each has a reward of its own."""
        counted = self._rewarded(inputs)
        if self.config.reward == "sequence":
            counted = counted.any(1, keepdim=True)
        values = reward[:, : counted.shape[1]]
        count = counted.sum().clamp(min=1)
        mean = carry["baseline"].to(reward)
        found = {"baseline": torch.where(counted, values, 0.0).sum() / count}
        if self.value is not None:
            apart = torch.where(counted, (values - mean).abs(), 0.0).sum() / count
            found["spread"] = apart.clamp(min=LEAST_SPREAD)
        decay = self.config.decay
        return {k: decay * carry[k].to(reward) + (1 - decay) * now for k, now in found.items()}


def _others(reward: Float[Tensor, "B T"], copies: int) -> Float[Tensor, "B T"]:
    """Mean reward of the other copies of the same example."""
    if copies < 2:
        raise Refused("baseline=leave_one_out needs several draws of every example.")
    drawn = reward.unflatten(0, (-1, copies))
    return ((drawn.sum(1, keepdim=True) - drawn) / (copies - 1)).flatten(0, 1)


def _before(trace: Trace) -> Float[Tensor, "B T F"]:
    """What is known before a draw: the state of the step before, and the input of this one."""
    states = functional.pad(trace.states, (0, 0, 1, -1))
    return torch.cat((states, trace.embedded), -1).detach()


def _summed(inputs: LossInputs, name: str) -> Float[Tensor, "B T"]:
    """One term, summed over the slots that sample."""
    found = [a.terms[name] for a in inputs.trace.attended if "log_prob" in a.terms]
    if not found:
        raise Refused("reinforce needs a normalizer that samples keys; use hard_reinforce.")
    if len({tuple(one.shape) for one in found}) > 1:
        counts = " and ".join(str(one.shape[1]) for one in found)
        raise Refused(
            "reinforce adds up the draws of each step, and slots here take different numbers of "
            f"steps ({counts}); use a backbone whose slots are asked together."
        )
    return torch.stack(found).sum(0)
