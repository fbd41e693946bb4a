"""Words that a search has found: cut at EOS, and unknown words replaced."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.batch import Batch, Sizes
from bench.api.errors import Refused

LAST_SPECIAL = Sizes._field_defaults["eos"]
"""Ids up to this one are special: padding, BOS, EOS."""


def cut_at_eos(words: Int[Tensor, "B T"], eos: int) -> tuple[tuple[int, ...], ...]:
    """Rows of ids up to, not including, EOS."""
    found = []
    for row in words.tolist():
        end = row.index(eos) if eos in row else len(row)
        found.append(tuple(row[:end]))
    return tuple(found)


def source_words(batch: Batch) -> Int[Tensor, "B S"]:
    """The source in ids that a target can hold.

    Raises:
        Refused: This task's sources have none.
    """
    if batch.extended is None:
        raise Refused("replace_unk needs the token ids of the source, and this batch has none.")
    return batch.extended


def looked_at(
    weights: Float[Tensor, "B S"], words: Int[Tensor, "B S"], unk: int
) -> Int[Tensor, " B"]:
    """The source word that got most attention; UNK where the source has no words."""
    if weights.shape != words.shape:
        raise Refused("replace_unk needs an encoder with one state per word.")
    weights = torch.where(words > LAST_SPECIAL, weights, -1.0)
    most, place = weights.max(1, keepdim=True)
    return torch.where(most >= 0, words.gather(1, place), unk).squeeze(1)


def repeated_rows(batch: Batch, times: int) -> Int[Tensor, " N"]:
    """0 0 1 1 ... for two times."""
    tokens = batch.sources[0].tokens
    return torch.arange(len(tokens), device=tokens.device).repeat_interleave(times)
