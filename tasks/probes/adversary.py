"""Adversary: weights that are as different as possible under almost the same prediction.

Jain & Wallace, 2019, "Attention is not explanation", https://arxiv.org/abs/1902.10186, section
4.2.2, equation 6. Counter-checks of Wiegreffe & Pinter, 2019, https://arxiv.org/abs/1908.04626:
weights frozen to uniform in training (the control `uniform`), and seeds (the report's intervals).

Deviations: one adversary a target instead of k; the constraint is a penalty, and only adversaries
that meet it are counted.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.interventions import Intervention, interventions
from tasks.probes.observations import (
    at,
    js_divergence,
    observe,
    pick,
    probabilities,
    refuse_other_than_shares,
    total_variation,
)

PENALTY = 500.0
"""Weight of the constraint in the loss, per unit of total variation beyond epsilon."""


@dataclass(frozen=True, kw_only=True)
class AdversaryConfig(Config):
    """Options of the search."""

    epsilon: Annotated[float, FloatRange(0.001, 0.1, log=True)] = 0.01
    """Largest change of the prediction (total variation)."""
    steps: Annotated[int, IntRange(10, 500, log=True)] = 60
    """Updates of the search."""
    lr: Annotated[float, FloatRange(0.01, 1.0, log=True)] = 0.1
    """Step size of the search."""

    def __post_init__(self) -> None:
        """Check sizes."""
        if self.steps < 1 or self.epsilon <= 0 or self.lr <= 0:
            raise InvalidConfig("adversary: steps, epsilon and lr must be positive.")


@register(
    "probe",
    "adversary",
    config=AdversaryConfig,
    citation=Citation(
        text="Jain & Wallace, 2019",
        url="https://arxiv.org/abs/1902.10186",
        where="section 4.2.2, equation 6",
    ),
)
class Adversary(Probe):
    """max JS(a, a') such that the prediction moves by at most epsilon; the bound is log 2."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic(
            "adversary_js_nats",
            "JS of weights with the same prediction",
            "",
            unit="nats",
            high=None,
        ),
        diagnostic("adversary_found_share", "Targets with an adversary", "targets"),
    )

    def __init__(self, config: AdversaryConfig) -> None:
        super().__init__(config)
        self.config = config

    def measure(self, subject: Subject) -> list[Scored]:
        """Search for each target at once.

        Raises:
            Refused: Weights are below zero or above one.
        """
        generator = torch.Generator().manual_seed(subject.seed)
        best: list[Tensor] = []
        for test in interventions(subject, generator):
            refuse_other_than_shares(test.weights)
            best.append(self._search(test, generator)[test.several])
        found = torch.cat(best)
        reached = found > 0
        mean = float(found[reached].mean()) if bool(reached.any()) else 0.0
        return [
            Scored(metric="adversary_js_nats", value=mean),
            Scored(metric="adversary_found_share", value=float(reached.double().mean())),
        ]

    def _search(self, test: Intervention, generator: torch.Generator) -> Float[Tensor, " B"]:
        """Largest divergence seen within epsilon, zero where nothing was."""
        draws = torch.randn(test.weights.shape, generator=generator).to(test.weights)
        logits = draws.requires_grad_()
        optimizer = torch.optim.Adam([logits], lr=self.config.lr)
        best = torch.zeros_like(test.weights[:, 0])
        for _ in range(self.config.steps):
            with torch.enable_grad():
                other = torch.softmax(logits.masked_fill(~test.real, float("-inf")), -1)
                moved = total_variation(test.predicted, _predicted(test, other))
                apart = js_divergence(test.weights, other)
                beyond = (moved - self.config.epsilon).clamp(min=0)
                loss = (PENALTY * beyond - apart).sum()
                optimizer.zero_grad()
                loss.backward()
            inside = (moved <= self.config.epsilon).detach()
            best = torch.where(inside & (apart > best), apart.detach(), best)
            optimizer.step()
        return best


def _predicted(test: Intervention, weights: Float[Tensor, "B S"]) -> Float[Tensor, "B V"]:
    edit = at(test.targets, weights[:, None, :].expand_as)
    seen = observe(test.subject, test.batch, edit)
    return pick(probabilities(test.subject, seen), test.targets)
