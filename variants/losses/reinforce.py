"""REINFORCE: makes sampled keys likelier in proportion to how much better than usual they did.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.1; the estimator is that of Williams, 1992.

Deviations: the surrogate is divided by the number of target tokens, as the negative log likelihood
is. The baseline starts at zero, as in the authors' code.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.backbone import Loss, LossInputs
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(Config):
    """Options of the REINFORCE loss."""

    weight: Annotated[float, FloatRange(0.01, 1.0, log=True)] = 0.1
    """lambda_r, weight of the reward term; dimensionless."""
    entropy: Annotated[float, FloatRange(1e-4, 0.1, log=True)] = 0.002
    """lambda_e, reward for the entropy of the weights (nats per nat)."""
    reward: Literal["sequence", "token"] = "sequence"
    """Log likelihood that a draw is rewarded with: of all targets, or of its own. The latter is
    unbiased only where later states do not depend on the draw."""
    baseline: Literal["moving_average", "none"] = "moving_average"
    """What is subtracted from the reward: its running mean, or nothing."""
    decay: Annotated[float, FloatRange(0.5, 0.999)] = 0.9
    """Share of the running mean that a step keeps."""

    def __post_init__(self) -> None:
        """Check weights and decay."""
        if self.weight < 0 or self.entropy < 0:
            raise InvalidConfig(
                "reinforce: weight and entropy must be at least 0, "
                f"got {self.weight} and {self.entropy}."
            )
        if not 0 <= self.decay < 1:
            raise InvalidConfig(f"reinforce: decay must be in [0, 1), got {self.decay}.")


@register(
    "loss",
    "reinforce",
    config=ReinforceConfig,
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.1"
    ),
)
class ReinforceLoss(Loss):
    """-lambda_r stop(R - b) log p(z) - lambda_e H, with R the log likelihood of the targets."""

    gives = frozenset({"loss:reinforce"})
    cannot = {"self": "a reward belongs to a target, and queries within the source have none."}

    def __init__(self, config: ReinforceConfig) -> None:
        super().__init__(config)
        self.config = config

    def init(self) -> dict[str, Tensor]:
        """The running mean of the reward (nats)."""
        return {"baseline": torch.zeros(())}

    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Steps that are not scored get no reward and give none."""
        mask = inputs.batch.mask
        reward = torch.where(mask, -inputs.nll.detach(), 0.0)
        counted = mask
        if self.config.reward == "sequence":
            reward, counted = reward.sum(1, keepdim=True), mask.any(1, keepdim=True)
        baseline = carry["baseline"].to(reward)
        advantage = reward - baseline if self.config.baseline == "moving_average" else reward
        gain = self.config.weight * advantage * _summed(inputs, "log_prob")
        gain = gain + self.config.entropy * _summed(inputs, "entropy")
        term = -torch.where(mask, gain, 0.0).sum() / mask.sum().clamp(min=1)
        mean = torch.where(counted, reward, 0.0).sum() / counted.sum().clamp(min=1)
        decay = self.config.decay
        return term, {"baseline": decay * baseline + (1 - decay) * mean}


def _summed(inputs: LossInputs, name: str) -> Float[Tensor, "B T"]:
    """One term, summed over the slots that sample."""
    found = [a.terms[name] for a in inputs.trace.attended if "log_prob" in a.terms]
    if not found:
        raise Refused("reinforce needs an alignment that samples keys; use hard_reinforce.")
    return torch.stack(found).sum(0)
