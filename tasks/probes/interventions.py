"""One target of each example, and what the network predicts when its weights are changed."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.batch import Batch
from bench.api.probe import Subject
from tasks.probes.observations import (
    Change,
    at,
    erase,
    observe,
    one_target,
    pick,
    probabilities,
)


class Intervention:
    """One batch, one target of each example."""

    def __init__(self, subject: Subject, batch: Batch, targets: Int[Tensor, " B"]) -> None:
        self.subject, self.batch, self.targets = subject, batch, targets
        with torch.no_grad():
            seen = observe(subject, batch)
            self.weights: Float[Tensor, "B S"] = pick(seen.weights, targets)
            self.real: Bool[Tensor, "B S"] = pick(seen.real, targets)
            self.predicted: Float[Tensor, "B V"] = pick(probabilities(subject, seen), targets)
        self.decision = self.predicted.argmax(-1)
        self.several: Bool[Tensor, " B"] = batch.mask.any(-1) & (self.real.sum(-1) > 1)
        """Examples with a scored target and more than one key."""

    def predict(self, change: Change) -> Float[Tensor, "B V"]:
        """Prediction once the weights are changed."""
        with torch.no_grad():
            seen = observe(self.subject, self.batch, at(self.targets, change))
            return pick(probabilities(self.subject, seen), self.targets)

    def without(self, keys: Bool[Tensor, "B S"]) -> Float[Tensor, "B V"]:
        """Prediction without these weights.

        Raises:
            Refused: Weights are below zero.
        """
        return self.predict(erase(keys))

    def uniform(self) -> Float[Tensor, "B V"]:
        """Prediction with equal weights on all real keys."""
        real = self.real.to(self.weights)
        equal = (real / real.sum(-1, keepdim=True).clamp(min=1))[:, None, :]
        return self.predict(equal.expand_as)

    def gradient(self) -> Float[Tensor, "B S"]:
        """Derivative of the decision's probability with respect to each weight, over all heads."""
        bump = torch.zeros_like(self.weights, requires_grad=True)
        with torch.enable_grad():
            edit = at(self.targets, lambda weights: weights + bump[:, None, :])
            seen = observe(self.subject, self.batch, edit)
            found = pick(probabilities(self.subject, seen), self.targets)
            chosen = found.gather(-1, self.decision[:, None]).sum()
            if not chosen.requires_grad:  # a prediction that does not depend on the weights
                return bump.detach()
            (gradient,) = torch.autograd.grad(chosen, bump)
        return gradient


def interventions(subject: Subject, generator: torch.Generator) -> Iterator[Intervention]:
    """Every batch, with a drawn target of each example."""
    for batch in subject.batches:
        yield Intervention(subject, batch, one_target(batch, generator))
