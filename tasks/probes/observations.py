"""Weights of a trained model on test batches, and edits of them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from bench.api.batch import Batch
from bench.api.call import Call, Edit
from bench.api.errors import Refused
from bench.api.noise import DRAWS
from bench.api.probe import Subject
from bench.api.trace import Mode, Trace
from tasks.metrics.attention_scores import are_shares

Change = Callable[[Float[Tensor, "B H S"]], Float[Tensor, "B H S"]]
"""A change of the weights of one target of each example."""


class Observation(NamedTuple):
    """One batch under teacher forcing."""

    batch: Batch
    trace: Trace
    weights: Float[Tensor, "B T S"]
    """Of the first slot that holds the variant, averaged over heads."""
    real: Bool[Tensor, "B T S"]
    """Keys that exist and may be seen."""

    @property
    def gold(self) -> Float[Tensor, "B T S"]:
        """Gold alignment."""
        if self.batch.gold is None:
            raise Refused("this task has no gold alignment.")
        return self.batch.gold


def observations(subject: Subject, *, edit: Edit | None = None) -> Iterator[Observation]:
    """Run every batch without gradients.

    Raises:
        Refused: The network has no weights, or they do not belong to targets.
    """
    with torch.no_grad():
        for batch in subject.batches:
            yield observe(subject, batch, edit)


def observe(subject: Subject, batch: Batch, edit: Edit | None = None) -> Observation:
    """Run one batch."""
    trace = subject.backbone(batch, Mode(noise=DRAWS, edit=edit))
    if not trace.attended or trace.attended[0].weights is None:
        raise Refused("this network has no attention weights.")
    if not subject.backbone.aligns(batch):
        raise Refused("these weights are over the sequence itself, not from target to source.")
    return Observation(batch, trace, trace.weights, _real(batch, trace.weights))


def _real(batch: Batch, weights: Float[Tensor, "B T S"]) -> Bool[Tensor, "B T S"]:
    if not batch.sources:
        places = torch.arange(weights.shape[2], device=weights.device)
        return (places <= places[:, None]).expand_as(weights)
    mask = batch.state_mask()
    if mask.shape[1] != weights.shape[2]:
        raise Refused("these weights are over several sources, not the first one alone.")
    return mask[:, None, :].expand_as(weights)


def refuse_other_keys(seen: Observation, values: Float[Tensor, "B H S D"]) -> None:
    """Refuse weights that are not over these values: over words, where sentences were mixed."""
    if values.shape[2] != seen.weights.shape[2]:
        raise Refused("the weights of this network are not over the values that it mixed.")


def refuse_other_than_shares(weights: Float[Tensor, "*B S"]) -> None:
    """Refuse weights without entropy and divergence: of either sign, or above one."""
    if not are_shares(weights):
        raise Refused(
            "some weights of this network are below zero or above one, which have no entropy and "
            "no divergence."
        )


def probabilities(subject: Subject, seen: Observation) -> Float[Tensor, "B T V"]:
    """What the network predicts at every target."""
    backbone = subject.backbone
    if backbone.output.sequence_only:
        raise Refused("this output has no distribution for a single target.")
    return backbone.output.log_probs(seen.trace, backbone.emit, seen.batch).exp()


def one_target(batch: Batch, generator: torch.Generator) -> Int[Tensor, " B"]:
    """Draw a scored target of each example.

    An intervention at one target at a time is valid in every decoder: no later state has seen it.
    """
    chances = batch.mask.double().cpu()
    empty = chances.sum(-1) == 0
    chances[empty, 0] = 1.0
    return torch.multinomial(chances, 1, generator=generator).squeeze(1).to(batch.mask.device)


def at(targets: Int[Tensor, " B"], change: Change) -> Edit:
    """An edit of the weights of one target of each example, in every head and layer."""

    def edit(weights: Tensor, call: Call) -> Tensor:
        here = (call.position[None, :] == targets[:, None])[:, None, :, None]
        if not bool(here.any()):
            return weights
        row = torch.where(here, weights, 0.0).sum(2)
        return torch.where(here, change(row).unsqueeze(2), weights)

    return edit


def erase(keys: Bool[Tensor, "B S"]) -> Change:
    """Remove weights and rescale the others to the same sum.

    The change refuses weights below zero: those that are left could have no sum to rescale.
    """

    def change(weights: Float[Tensor, "B H S"]) -> Float[Tensor, "B H S"]:
        if bool((weights < 0).any()):
            raise Refused("some weights of this network are below zero, and none can be erased.")
        kept = torch.where(keys[:, None, :], 0.0, weights)
        left = kept.sum(-1, keepdim=True)
        scale = weights.sum(-1, keepdim=True) / torch.where(left > 0, left, 1.0)
        return kept * scale

    return change


def pick(x: Shaped[Tensor, "B T ..."], targets: Int[Tensor, " B"]) -> Tensor:
    """The entry of each example's target."""
    return x[torch.arange(len(targets), device=x.device), targets]


def js_divergence(p: Float[Tensor, "*B V"], q: Float[Tensor, "*B V"]) -> Float[Tensor, "*B"]:
    """Jensen-Shannon divergence (nats, at most log 2)."""
    middle = (p + q) / 2
    halves = [
        (torch.special.xlogy(one, one) - torch.special.xlogy(one, middle)).sum(-1) for one in (p, q)
    ]
    return ((halves[0] + halves[1]) / 2).clamp(min=0.0)


def total_variation(p: Float[Tensor, "*B V"], q: Float[Tensor, "*B V"]) -> Float[Tensor, "*B"]:
    """Half the sum of absolute differences, between 0 and 1."""
    return (p - q).abs().sum(-1) / 2
