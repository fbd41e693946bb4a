"""Texts cut into sentences, and numbers of sentences mapped back to tokens."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.batch import Text


class Sentences(NamedTuple):
    """A text folded so that sentences are rows; both axes are padded on the right."""

    tokens: Int[Tensor, "B N J"]
    mask: Bool[Tensor, "B N J"]
    """True where a word is real; a sentence without any is padding."""
    place: Int[Tensor, "B S"]
    """Where each token went, n J + j; zero for padding."""
    real: Bool[Tensor, "B S"]
    """True where a token is real."""

    def fold(self, x: Int[Tensor, "B S"]) -> Int[Tensor, "B N J"]:
        """Fold other values of the tokens; zero at padding."""
        rows, count, length = self.tokens.shape
        # one position too many, for padding to fall into
        place = torch.where(self.real, self.place, count * length)
        folded = x.new_zeros(rows, count * length + 1).scatter(1, place, x)
        return folded[:, :-1].unflatten(1, (count, length))

    def unfold(self, x: Float[Tensor, "B N J"]) -> Float[Tensor, "B S"]:
        """Map numbers of words back to the tokens; zero for padding."""
        return torch.where(self.real, x.flatten(1).gather(1, self.place), 0.0)

    def spread(self, x: Float[Tensor, "B H N"]) -> Float[Tensor, "B H S"]:
        """Share numbers of sentences evenly among their words; zero for padding."""
        words = self.mask.sum(-1).clamp(min=1).unsqueeze(1)
        sentence = (self.place // self.tokens.shape[2]).unsqueeze(1).expand(-1, x.shape[1], -1)
        return torch.where(self.real.unsqueeze(1), (x / words).gather(2, sentence), 0.0)


def split_sentences(text: Text) -> Sentences:
    """Cut where the segment changes; a text without segments is one sentence."""
    tokens = text.tokens
    rows, length = tokens.shape
    real = torch.ones_like(tokens, dtype=torch.bool) if text.mask is None else text.mask
    begins = torch.zeros_like(real)
    if text.segments is not None:
        begins[:, 1:] = text.segments[:, 1:] != text.segments[:, :-1]
    index = torch.arange(length, device=tokens.device).expand(rows, -1)
    number = begins.long().cumsum(1)
    word = index - torch.where(begins, index, 0).cummax(1).values
    count = int(torch.where(real, number, 0).max()) + 1
    longest = int(torch.where(real, word, 0).max()) + 1
    place = torch.where(real, number * longest + word, 0)
    empty = torch.zeros(rows, count, longest, dtype=tokens.dtype, device=tokens.device)
    frame = Sentences(empty, empty.bool(), place, real)
    return frame._replace(tokens=frame.fold(tokens), mask=frame.fold(real.long()).bool())
