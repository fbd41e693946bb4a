"""The lightning indexer: small heads that score keys, so that attention reads the best ones.

DeepSeek-AI, 2025, https://arxiv.org/abs/2512.02556, section 2.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.inputs import SlotInput
from bench.api.mask import Windows
from bench.api.shapes import Allowed
from bench.api.source import leaf

QUERY, WEIGHT, KEY = "index_query", "index_weight", "index_key"
"""Inputs of the indexer. They are shared by all heads, and the states learn nothing from them."""
KL = "indexer_kl"
"""Term of each query: how far the indexer is from the attention that it serves (nats)."""


@dataclass(frozen=True, kw_only=True)
class IndexerConfig(Config):
    """Options of an indexer; a subclass says what it chooses."""

    owner: ClassVar[str]
    """Name of the part that has the options."""
    index_heads: Annotated[int, IntRange(1, 64, log=True)] = 4
    """Heads of the indexer."""
    index_width: Annotated[int, IntRange(4, 128, log=True)] = 16
    """Width of its queries and keys."""
    warm_up: Annotated[float, FloatRange(0.0, 0.5)] = 0.25
    """Share of training in which everything is read, and the indexer learns to rank it."""

    def __post_init__(self) -> None:
        """Check what the indexer has."""
        if min(self.index_heads, self.index_width) < 1:
            raise InvalidConfig(
                f"{self.owner}: index_heads and index_width must be at least 1, "
                f"got {self.index_heads} and {self.index_width}."
            )
        if not 0 <= self.warm_up < 1:
            raise InvalidConfig(f"{self.owner}: warm_up must be in [0, 1), got {self.warm_up}.")


def inputs_of_queries(heads: int, width: int) -> dict[str, SlotInput]:
    """What each query brings: a vector and a weight for each head of the indexer."""
    return {
        QUERY: SlotInput(heads * width, shared=True, detached=True),
        WEIGHT: SlotInput(heads, shared=True, detached=True),
    }


def input_of_keys(width: int) -> SlotInput:
    """What each key brings: one vector for all heads of the indexer."""
    return SlotInput(width, shared=True, detached=True)


def index_scores(call: Call, key: Float[Tensor, "B S w"]) -> Float[Tensor, "B L S"]:
    """sum_j w_j ReLU(q_j . k) / sqrt(J w), over the J heads of the indexer, which are w wide."""
    weight = leaf(call.extras, WEIGHT).squeeze(2)
    query = leaf(call.extras, QUERY).squeeze(2).unflatten(-1, (weight.shape[-1], -1))
    liked = torch.relu(torch.einsum("bljw,bsw->bljs", query, key))
    numbers = query.shape[-2] * query.shape[-1]
    return torch.einsum("blj,bljs->bls", weight, liked) * numbers**-0.5


def best_keys(index: Float[Tensor, "B L S"], allowed: Allowed, count: int) -> Allowed:
    """The keys with the highest scores among those that are allowed; of a tie the later ones."""
    count = min(count, index.shape[-1])
    ranked = index.detach()[:, None].masked_fill(~allowed, float("-inf"))
    # a sort of all scores takes ten times as long on a processor
    last = ranked.topk(count, -1).values[..., -1:]
    above, tied = ranked > last, ranked == last
    from_here = tied.flip(-1).cumsum(-1).flip(-1)
    free = count - above.sum(-1, keepdim=True)
    return (above | (tied & (from_here <= free))) & allowed


def listed(best: Allowed, count: int) -> Windows:
    """The same keys one by one.

    Args:
        best: What `best_keys` found.
        count: How many it was asked for.
    """
    keys = best.byte().topk(min(count, best.shape[-1]), -1).indices
    return Windows(keys, best.gather(-1, keys))


def divergence(
    index: Float[Tensor, "B L S"], weights: Float[Tensor, "B Hq L S"], read: Allowed
) -> Float[Tensor, "B L"]:
    """KL(p || softmax(index)) over the keys that are read; p is the mean of the heads' weights.

    Nothing goes back into the weights. A query that reads nothing has zero.
    """
    seen = read.any(1)
    target = weights.detach().sum(1)
    target = target / target.sum(-1, keepdim=True).clamp_min(torch.finfo(target.dtype).tiny)
    said = torch.log_softmax(torch.where(seen, index, torch.finfo(index.dtype).min), -1)
    # a key that is not read has no logarithm worth multiplying by zero
    return (torch.xlogy(target, target) - target * torch.where(seen, said, 0.0)).sum(-1)


def oracle_index(
    query: Float[Tensor, " n"], weight: Float[Tensor, " J"], keys: Sequence[Float[Tensor, " w"]]
) -> list[Float[Tensor, ""]]:
    """`index_scores` of one query, head by head and key by key."""
    found = []
    for key in keys:
        total = query.new_zeros(())
        for j in range(len(weight)):
            dot = sum((query[j * len(key) + i] * key[i] for i in range(len(key))), total * 0)
            if float(dot.detach()) > 0:
                total = total + weight[j] * dot
        found.append(total / len(query) ** 0.5)
    return found


def oracle_best(index: Sequence[Tensor], allowed: Sequence[bool], count: int) -> list[bool]:
    """`best_keys` of one query: a key is read where fewer than `count` stand before it."""
    scores = [float(one.detach()) for one in index]
    places = [s for s in range(len(scores)) if allowed[s]]
    return [
        allowed[s] and sum((scores[o], o) > (scores[s], s) for o in places) < count
        for s in range(len(scores))
    ]


def oracle_divergence(
    index: Sequence[Tensor], heads: Sequence[Sequence[float]], read: Sequence[bool]
) -> Float[Tensor, ""]:
    """`divergence` of one query, from the weights of each head."""
    zero = torch.zeros_like(index[0])
    seen = [s for s in range(len(index)) if read[s]]
    if not seen:
        return zero
    top = max(float(index[s].detach()) for s in seen)
    total = sum((torch.exp(index[s] - top) for s in seen), zero)
    mass = sum(row[s] for row in heads for s in seen)
    found = zero
    for s in seen:
        share = torch.as_tensor(sum(row[s] for row in heads) / mass, dtype=zero.dtype)
        if share > 0:
            found = found + share * (share.log() - (index[s] - top - total.log()))
    return found
