"""From scores of source positions to scores of the words at these positions."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.batch import Batch
from bench.api.errors import Refused
from bench.api.output import OutputSizes
from bench.api.source import Memory
from variants.precision import at_least_single

NEVER = -1e30
"""Logarithm of no probability; finite, so that gradients are."""
FLOOR = 1e-20
"""Probability of a word that is not there; keeps logarithms and gradients finite."""


def copy_ids(batch: Batch, owner: str) -> Int[Tensor, "B S"]:
    """The source in the extended vocabulary."""
    if batch.extended is None:
        raise Refused(f"{owner} copies source words, and this batch has no ids for them.")
    return batch.extended


def source_states(
    memories: tuple[Memory | None, ...], sizes: OutputSizes, owner: str
) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
    """States of the source's tokens as attention reads them, heads side by side, and the mask."""
    memory = memories[0] if memories else None
    if memory is None:
        raise Refused(f"{owner} reads the states of the source, and this network keeps none.")
    states = memory.source.value.transpose(1, 2).flatten(2)
    if states.shape[2] != sizes.source:
        raise Refused(
            f"{owner} reads source states of width {sizes.source}, and these heads return "
            f"{states.shape[2]}; use head=raw."
        )
    return states, memory.source.key_mask()


def log_words(
    scores: Float[Tensor, "B T S"], ids: Int[Tensor, "B S"], size: int
) -> Float[Tensor, "B T V"]:
    """Log of the summed exponentials of all positions of a word; `NEVER` for absent words."""
    index = ids.unsqueeze(1).expand_as(scores)
    shape = (*scores.shape[:2], size)
    # the largest score of each word, not of the row: a word far below the best stays exact
    top = torch.full(shape, NEVER, dtype=scores.dtype, device=scores.device)
    top = top.scatter_reduce(2, index, scores.detach(), "amax")
    shifted = (scores - top.gather(2, index)).exp()
    total = torch.zeros_like(top).scatter_add(2, index, shifted)
    held = total > 0
    return torch.where(held, torch.where(held, total, 1.0).log() + top, NEVER)


def log_matches(
    scores: Float[Tensor, "B T S"], ids: Int[Tensor, "B S"], words: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """`log_words` at one word a step: no distribution is made."""
    same = ids.unsqueeze(1) == words.unsqueeze(-1)
    return torch.logsumexp(torch.where(same, scores, NEVER), -1).clamp_min(NEVER)


def log_softmax(logits: Tensor) -> Tensor:
    """In at least float32."""
    return torch.log_softmax(at_least_single(logits), -1)


def oracle_vocabulary(logits: Float[Tensor, " V"], num_extra: int) -> list[Tensor]:
    """The softmax of one step by loops, and no probability for extra ids."""
    raised = [torch.exp(x) for x in logits]
    total = sum(raised, torch.zeros_like(logits[0]))
    return [p / total for p in raised] + [torch.zeros_like(total)] * num_extra


def scatter_rows(picked: Bool[Tensor, "B T"], losses: Float[Tensor, " N"]) -> Float[Tensor, "B T"]:
    """Put the losses of scored positions back among zeros."""
    full = torch.zeros(picked.shape, dtype=losses.dtype, device=losses.device)
    return full.masked_scatter(picked, losses)
