"""From a number for each distance to one for each key, and back.

Queries have consecutive positions, so that the keys of one query, by distance, are those of the
query before it shifted by one position. The way back is therefore a copy with other strides and
sums of neighbors, where adding to an index would go key by key. A distance beyond the clip counts
as the clip.

Where every distance that occurs has a number of its own, `distances` lists them. `diagonals` then
gives each pair of query and key the number of its distance, and `shift` does so where each query
has numbers of its own.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Call

BLOCK = 2**18
"""Numbers written at once: a megabyte in float32, about what a core has of its own cache."""


def spread(
    by_distance: Float[Tensor, "B H L K"], first: int, keys: int
) -> Float[Tensor, "B H L S"]:
    """For query i at position `first` + i and key j, the number of distance j - i, clipped.

    The middle of the last axis is distance zero.
    """
    return _Spread.apply(by_distance, first, keys)


def collect(weights: Float[Tensor, "B H L S"], first: int, clip: int) -> Float[Tensor, "B H L K"]:
    """Sums of weights over the keys of each clipped distance; the transpose of `spread`."""
    return _Collect.apply(weights, first, clip)


def distances(call: Call) -> Int[Tensor, " n"]:
    """Key minus query: from the last query and first key to the first query and last key.

    A single query behind a cache that has forgotten keys gets those of the keys that are left, or a
    step would cost as much as if nothing had been forgotten.
    """
    if _few(call):
        return call.key_position - call.offset
    last = call.offset + call.query.shape[2] - 1
    return torch.arange(-last, _arrived(call) - call.offset, device=call.query.device)


def diagonals(values: Float[Tensor, "H n"], call: Call) -> Float[Tensor, "1 H L S"]:
    """For every query and key the number of their distance, in the order of `distances`."""
    if _few(call):
        return values[None, :, None]
    # the window of a query begins one number before that of the query before it
    windows = values.unfold(-1, _arrived(call), 1).flip(-2).unsqueeze(0)
    return windows[..., call.key_position] if call.memory.forgotten else windows


def _few(call: Call) -> bool:
    return bool(call.memory.forgotten) and call.query.shape[2] == 1


def _arrived(call: Call) -> int:
    """Keys so far, those that were forgotten included."""
    return call.memory.num_keys + call.memory.forgotten


def shift(by_distance: Float[Tensor, "B H L n"], keys: int) -> Float[Tensor, "B H L S"]:
    """For every query and key the query's number of their distance, in the order of `distances`."""
    queries, width = by_distance.shape[2:]
    if queries == 1:
        return by_distance
    # the keys of query i begin at number L - 1 - i, so rows that are one number shorter line up
    flat = by_distance.flatten(2)[..., queries - 1 : queries * width - 1]
    return flat.unflatten(2, (queries, width - 1))[..., :keys]


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, by_distance: Tensor, first: int, keys: int) -> Tensor:
        queries, clip = by_distance.shape[2], by_distance.shape[3] // 2
        ctx.first, ctx.clip = first, clip
        places = torch.arange(first, first + queries, device=by_distance.device)
        distance = torch.arange(keys, device=by_distance.device) - places[:, None]
        bucket = distance.clamp(-clip, clip) + clip
        return by_distance.gather(-1, bucket.expand(*by_distance.shape[:2], -1, -1))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Collect.apply(grad, ctx.first, ctx.clip), None, None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, first: int, clip: int) -> Tensor:
        ctx.first, ctx.keys = first, weights.shape[3]
        rows, heads, queries, keys = weights.shape
        found = weights.new_empty(rows, heads, queries, 2 * clip + 1)
        step = max(1, BLOCK // max(1, rows * heads * keys))
        for at in range(0, queries, step):
            block = weights[:, :, at : at + step]
            left, middle, right = _by_distance(block, first + at, clip)
            some = found[:, :, at : at + step]
            some.copy_(middle)
            some[..., 0] += left.sum(-1)
            some[..., -1] += right.sum(-1)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Spread.apply(grad, ctx.first, ctx.keys), None, None


def _by_distance(block: Tensor, first: int, clip: int) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of each query in order of distance, zeros where no key is, cut at the clip."""
    rows, heads, queries, keys = block.shape
    back, ahead = max(first + queries - 1, clip), max(keys - 1 - first, clip)
    width = back + 1 + ahead
    wide = block.new_zeros(rows, heads, queries, width)
    # key j of query i is at position back + j - (first + i) of row i
    strides = (heads * queries * width, queries * width, width - 1, 1)
    wide.as_strided(block.shape, strides, back - first).copy_(block)
    left, middle, right = wide.split((back - clip, 2 * clip + 1, ahead - clip), -1)
    return left, middle, right
