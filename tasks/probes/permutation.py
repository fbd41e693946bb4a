"""Permutation: shuffle the weights of a target, and measure how far the prediction moves.

Jain & Wallace, 2019, "Attention is not explanation", https://arxiv.org/abs/1902.10186, sections 4.1
(correlation with gradients and leave-one-out) and 4.2.1 (permuted weights).

Deviations: at one target of each example, all heads and layers shuffled alike; the median over
permutations is averaged over examples.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.interventions import Intervention, interventions
from tasks.probes.observations import total_variation


@dataclass(frozen=True, kw_only=True)
class PermutationConfig(Config):
    """Options of the permutation test."""

    draws: Annotated[int, IntRange(1, 100, log=True)] = 20
    """Permutations of each example."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.draws < 1:
            raise InvalidConfig(f"permutation: draws must be at least 1, got {self.draws}.")


@register(
    "probe",
    "permutation",
    config=PermutationConfig,
    citation=Citation(
        text="Jain & Wallace, 2019",
        url="https://arxiv.org/abs/1902.10186",
        where="sections 4.1 and 4.2.1",
    ),
)
class Permutation(Probe):
    """Median total variation under shuffled weights; Kendall's tau with two other importances."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("permuted_change_share", "Prediction moves under shuffled weights", "mass"),
        diagnostic("uniform_change_share", "Prediction moves under uniform weights", "mass"),
        diagnostic(
            "tau_gradient_share", "Kendall's tau of weights and gradients", "", unit="tau", low=-1.0
        ),
        diagnostic(
            "tau_erasure_share", "Kendall's tau of weights and erasures", "", unit="tau", low=-1.0
        ),
    )

    def __init__(self, config: PermutationConfig) -> None:
        super().__init__(config)
        self.draws = config.draws

    def measure(self, subject: Subject) -> list[Scored]:
        """Shuffle in every batch."""
        generator = torch.Generator().manual_seed(subject.seed)
        found: dict[str, list[Tensor]] = {}
        for test in interventions(subject, generator):
            values = {
                "permuted_change_share": self._shuffled(test, generator),
                "uniform_change_share": _moved(test, test.uniform()),
                "tau_gradient_share": _tau(test, test.gradient().abs()),
                "tau_erasure_share": _tau(test, _leave_one_out(test)),
            }
            for name, value in values.items():
                kept = value[test.several]
                found.setdefault(name, []).append(kept[~kept.isnan()].double())
        means = {name: torch.cat(parts) for name, parts in found.items()}
        return [
            Scored(metric=name, value=float(values.mean()))
            for name, values in means.items()
            if len(values)
        ]

    def _shuffled(self, test: Intervention, generator: torch.Generator) -> Float[Tensor, " B"]:
        moves = []
        for _ in range(self.draws):
            draws = torch.rand(test.real.shape, generator=generator).to(test.weights.device)
            order = torch.where(test.real, draws, 2.0).argsort(-1)
            # the real keys come first in both orders, so weights move among them only
            places = torch.where(test.real, 0, 1).argsort(dim=-1, stable=True)
            source = torch.zeros_like(order).scatter(-1, places, order)
            moves.append(_moved(test, test.predict(partial(_taken, source=source))))
        # `median` of torch takes the lower one of the two in the middle of an even number
        return torch.stack(moves).quantile(0.5, dim=0)


def _taken(weights: Float[Tensor, "B H S"], source: Tensor) -> Float[Tensor, "B H S"]:
    return weights.gather(-1, source[:, None, :].expand_as(weights))


def _moved(test: Intervention, predicted: Float[Tensor, "B V"]) -> Float[Tensor, " B"]:
    return total_variation(test.predicted, predicted)


def _leave_one_out(test: Intervention) -> Float[Tensor, "B S"]:
    """How far the prediction moves when one weight is erased."""
    moves = []
    for key in range(test.real.shape[1]):
        keys = torch.zeros_like(test.real)
        keys[:, key] = True
        moves.append(_moved(test, test.without(keys)))
    return torch.stack(moves, -1)


def _tau(test: Intervention, other: Float[Tensor, "B S"]) -> Float[Tensor, " B"]:
    from scipy.stats import kendalltau  # noqa: PLC0415  slow to import

    found = []
    for row, real in enumerate(test.real):
        one, two = test.weights[row][real], other[row][real]
        constant = float(one.std(correction=0)) == 0 or float(two.std(correction=0)) == 0
        tau = float("nan") if constant else kendalltau(one.cpu(), two.cpu()).statistic
        found.append(float(tau))
    return torch.tensor(found, device=test.weights.device)
