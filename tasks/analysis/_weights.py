"""The weights of a trained model on its examples, as several instruments read them."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.backbone import Mode, Trace
from bench.api.errors import Refused
from bench.api.instrument import Subject
from bench.api.task import Batch


class Look(NamedTuple):
    """One batch under teacher forcing."""

    batch: Batch
    trace: Trace
    weights: Float[Tensor, "B T S"]
    """Of the first slot that holds the variant, averaged over heads."""


def looks(subject: Subject, mode: Mode) -> Iterator[Look]:
    """Run every batch without gradients.

    Raises:
        Refused: The network has no weights, or they do not belong to targets.
    """
    with torch.no_grad():
        for batch in subject.batches:
            trace = subject.backbone(batch, mode)
            if not trace.attended or trace.attended[0].weights is None:
                raise Refused("this network has no attention weights to look at.")
            if not subject.backbone.aligns(batch):
                raise Refused("these weights are over a sequence's own places, not an alignment.")
            yield Look(batch, trace, trace.weights)
