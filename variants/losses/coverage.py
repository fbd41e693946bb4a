"""Coverage: how much attention each source word got over a whole target."""

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.batch import Sizes
from bench.api.capabilities import Capability
from bench.api.errors import Refused
from bench.api.loss import LossInputs
from variants.precision import at_least_single

LeaveOut = Literal["special", "ends", "none"]
"""Keys that do not count: special words (BOS, EOS), the first and the last, or none."""

LAST_SPECIAL = Sizes._field_defaults["eos"]

NO_TARGET: Mapping[Capability, str] = {
    "causal": "it sums weights over a source, and causal self-attention has none",
    "self": "it sums weights over steps that are scored, and within the source none are",
    "pool": "it sums weights over steps, and pooling has one query",
}
"""Where coverage of a source by a target has no meaning."""


def scored_weights(inputs: LossInputs) -> Float[Tensor, "B T S"]:
    """Weights, zero at steps that are not scored, in a format in which sums of them are safe."""
    return torch.where(inputs.batch.mask.unsqueeze(2), at_least_single(inputs.trace.weights), 0.0)


def real_keys(inputs: LossInputs) -> Bool[Tensor, "B S"]:
    """Keys that are not padding."""
    weights = inputs.trace.weights
    memory = inputs.trace.memories[0]
    if memory is None:
        return weights.new_ones(weights.shape[0], weights.shape[2], dtype=torch.bool)
    return memory.source.key_mask()


def counted_keys(inputs: LossInputs, leave_out: LeaveOut) -> Bool[Tensor, "B S"]:
    """Keys that count.

    Raises:
        Refused: Special words are to be left out, and keys are not words.
    """
    real = real_keys(inputs)
    if leave_out == "none":
        return real
    if leave_out == "special":
        words = inputs.batch.sources[0].tokens
        if words.shape[1] != real.shape[1]:
            raise Refused("an encoder with fewer states than words cannot leave special words out.")
        return real & (words > LAST_SPECIAL)
    place = real.long().cumsum(1)
    return real & (place > 1) & (place < place[:, -1:])


def oracle_covered(inputs: LossInputs) -> list[Float[Tensor, ""]]:
    """What each key of one example without padding got, over all targets."""
    covered = [torch.zeros_like(weight) for weight in inputs.trace.weights[0, 0]]
    for weights in inputs.trace.weights[0]:
        covered = [total + weight for total, weight in zip(covered, weights, strict=True)]
    return covered


def oracle_counted(inputs: LossInputs, leave_out: LeaveOut) -> list[int]:
    """Places of the keys of one example that count."""
    places = range(inputs.trace.weights.shape[2])
    if leave_out == "special":
        words = inputs.batch.sources[0].tokens[0].tolist()
        return [place for place in places if words[place] > LAST_SPECIAL]
    return list(places[1:-1] if leave_out == "ends" else places)


def per_token(total: Float[Tensor, ""], inputs: LossInputs) -> Float[Tensor, ""]:
    """Divide a sum over the batch by its scored targets, as the likelihood is."""
    return total / inputs.batch.mask.sum().clamp(min=1)
