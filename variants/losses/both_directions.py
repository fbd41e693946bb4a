"""Weights of both directions of a sentence pair, as target by source of the first direction."""

from collections.abc import Iterator
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.batch import Batch, Sizes
from bench.api.loss import LossInputs

LAST_SPECIAL = Sizes._field_defaults["eos"]
"""Ids up to this one are special: padding, BOS, EOS."""


class BothWays(NamedTuple):
    """Weights of the two directions, target by source of the first."""

    ahead: Float[Tensor, "B T S"]
    behind: Float[Tensor, "B T S"]
    real: Bool[Tensor, "B T S"]
    """True where both positions are words."""


def both_ways(there: LossInputs, back: LossInputs) -> BothWays:
    """Transpose one direction, and cut both to the words they share.

    One direction may have an EOS that the other's source lacks; it does not count as a word.
    Position t of one direction's targets is position t of the other's source.
    """
    rows, columns = words(there.batch), words(back.batch)
    ahead, behind = there.trace.weights, back.trace.weights.transpose(1, 2)
    length = min(ahead.shape[1], behind.shape[1])
    width = min(ahead.shape[2], behind.shape[2])
    real = rows[:, :length, None] & columns[:, None, :width]
    return BothWays(ahead[:, :length, :width], behind[:, :length, :width], real)


def oracle_pairs(
    there: LossInputs, back: LossInputs
) -> Iterator[tuple[Float[Tensor, ""], Float[Tensor, ""]]]:
    """Both weights of every pair of words of one sentence pair, one after the other."""
    ahead, behind = there.trace.weights[0], back.trace.weights[0]
    for t, row in enumerate(there.batch.targets[0].tolist()):
        for s, column in enumerate(back.batch.targets[0].tolist()):
            inside = t < behind.shape[1] and s < ahead.shape[1]
            if inside and min(row, column) > LAST_SPECIAL:
                yield ahead[t, s], behind[s, t]


def per_token(total: Float[Tensor, ""], there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
    """Divide a sum over the batch by its scored targets, the mean of both directions.

    The papers add the term to likelihoods that are summed over words. Each direction's likelihood
    is a mean over its targets here, so the term is one, too.
    """
    count = there.batch.mask.sum() + back.batch.mask.sum()
    return 2 * total / count.clamp(min=1)


def words(batch: Batch) -> Bool[Tensor, "B T"]:
    """Targets that are scored and are words."""
    return batch.mask & (batch.targets > LAST_SPECIAL)
