"""Erasure: remove the largest weight, renormalize, and test whether the decision changes.

Serrano & Smith, 2019, "Is attention interpretable?", https://arxiv.org/abs/1906.03731, sections 4
(single weights against random ones) and 5 (weights erased in an order until the decision flips).

Deviations: at one target of each example, in every head and layer that holds the variant; ranks are
those of the weights averaged over heads. Keys that may not be seen are never erased.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.metric import Metric, Scored
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.interventions import Intervention, interventions
from tasks.probes.observations import js_divergence

ORDERS = ("attention", "gradient", "attention_gradient", "random")


@dataclass(frozen=True, kw_only=True)
class ErasureConfig(Config):
    """Options of the erasure test."""

    most: Annotated[int, IntRange(1, 256, log=True)] = 64
    """Largest number of keys that are erased one after the other; longer sources stop there."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.most < 1:
            raise InvalidConfig(f"erasure: most must be at least 1, got {self.most}.")


@register(
    "probe",
    "erasure",
    config=ErasureConfig,
    citation=Citation(
        text="Serrano & Smith, 2019", url="https://arxiv.org/abs/1906.03731", where="sections 4, 5"
    ),
)
class Erasure(Probe):
    """Decisions without the largest weight: divergence, flips, and keys erased until a flip."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic(
            "erase_js_difference_nats",
            "Jensen-Shannon divergence without the largest weight, minus without a random one",
            "",
            unit="nats",
            low=None,
            high=None,
        ),
        diagnostic("erase_flip_share", "Decision flips without the largest weight", "targets"),
        diagnostic("erase_random_flip_share", "Decision flips without a random one", "targets"),
        *(
            diagnostic(f"erased_by_{order}_share", f"Keys erased before a flip, by {order}", "keys")
            for order in ORDERS
        ),
    )

    def __init__(self, config: ErasureConfig) -> None:
        super().__init__(config)
        self.most = config.most

    def measure(self, subject: Subject) -> list[Scored]:
        """Erase in every batch.

        Raises:
            Refused: No example has two keys.
        """
        generator = torch.Generator().manual_seed(subject.seed)
        found: dict[str, list[Tensor]] = {}
        for test in interventions(subject, generator):
            for name, values in {**_single(test, generator), **self._many(test, generator)}.items():
                found.setdefault(name, []).append(values[test.several].double())
        if not any(len(part) for part in next(iter(found.values()), [])):
            raise Refused("every example here has one key only.")
        means = {name: torch.cat(parts).mean() for name, parts in found.items()}
        return [Scored(metric=name, value=float(value)) for name, value in means.items()]

    def _many(
        self, test: Intervention, generator: torch.Generator
    ) -> dict[str, Float[Tensor, " B"]]:
        gradient = test.gradient()
        scores = {
            "attention": test.weights,
            "gradient": gradient.abs(),
            "attention_gradient": (test.weights * gradient).abs(),
            "random": _random(test, generator),
        }
        return {
            f"erased_by_{order}_share": _until_flip(test, scores[order], self.most)
            for order in ORDERS
        }


def _random(test: Intervention, generator: torch.Generator) -> Float[Tensor, "B S"]:
    return torch.rand(test.weights.shape, generator=generator).to(test.weights)


def _single(test: Intervention, generator: torch.Generator) -> dict[str, Float[Tensor, " B"]]:
    """The largest weight against a random other one."""
    low = torch.finfo(test.weights.dtype).min
    largest = torch.where(test.real, test.weights, low).argmax(-1)
    draws = torch.where(test.real, _random(test, generator), -1.0)
    draws = draws.scatter(-1, largest[:, None], -2.0)
    one, other = (_one_hot(index, test) for index in (largest, draws.argmax(-1)))
    without, without_other = test.without(one), test.without(other)
    js = [js_divergence(test.predicted, found) for found in (without, without_other)]
    return {
        "erase_js_difference_nats": js[0] - js[1],
        "erase_flip_share": without.argmax(-1) != test.decision,
        "erase_random_flip_share": without_other.argmax(-1) != test.decision,
    }


def _one_hot(index: Int[Tensor, " B"], test: Intervention) -> Bool[Tensor, "B S"]:
    return torch.zeros_like(test.real).scatter(-1, index[:, None], value=True)


def _until_flip(test: Intervention, score: Float[Tensor, "B S"], most: int) -> Float[Tensor, " B"]:
    """Share of the keys erased, best first, when the decision flips; 1 if it never does."""
    low = torch.finfo(score.dtype).min
    rank = torch.where(test.real, score, low).argsort(dim=-1, descending=True, stable=True)
    rank = rank.argsort(-1)
    keys = test.real.sum(-1)
    needed = keys.clone()
    for count in range(min(most, int(keys.max())), 0, -1):
        flipped = test.without((rank < count) & test.real).argmax(-1) != test.decision
        needed = torch.where(flipped & (keys >= count), count, needed)
    return needed / keys
