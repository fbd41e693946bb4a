"""Sums over hidden units of v * tanh(query + key + features), in memory of one number per pair.

Two exact forms of tanh, both of twice the argument, which is why queries, keys and features are
given doubled:

    tanh(x) = 2 sigmoid(2x) - 1             any range, features too
    tanh(q + k) = 1 - 2 K / (K + Q),        K = exp(-2k), Q = exp(2q): a pair of query and
                                            key needs only a sum and a quotient

The constants add up to the sum of v, which softmax would cancel and other normalizers would not, so
it stays. Nothing as wide as queries x keys x units is ever whole in memory: both forms work on
blocks that fit the cache, and their backward passes compute the blocks again. Only a single query
of a few keys keeps what it computed.

Sharing one reciprocal between several units (a/A + b/B = (a B + b A) / (A B)) saves divisions
where divisions are slow, as on GPUs; in passes over memory it costs more than it saves.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bench.api.shapes import Energy, Features
from variants.per_head_linear import per_head_linear
from variants.precision import at_least_single
from variants.scores.pair_blocks import Block, block_steps, blocks
from variants.scores.tanh_reciprocals import ReciprocalSum

MANY_PAIRS = 2**14
"""Pairs of query and key in a row, from which on one unit is work enough for a call of its own."""
LONG = 32
"""Queries and keys from which on that holds for either axis."""
FEW_NUMBERS = 2**16
"""Numbers of the keys of a batch, up to which a single query keeps as many for its backward pass:
steps of a decoder, most of whose time is calls and not numbers."""

Query = Float[Tensor, "B H L D"]
Key = Float[Tensor, "B H S D"]
Slopes = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]
"""Gradients of query, key, v, features and the map of features."""


def tanh_sum(
    query: Query,
    key: Key,
    v: Float[Tensor, "H D 1"],
    features: Features | None = None,
    feature_map: Float[Tensor, "H F D"] | None = None,
) -> Energy:
    """Sum v_d tanh(x_d) over units, 2 x_d = query_d + key_d + (features @ feature_map)_d.

    Half precision is computed in single, as only sums as long as a row leave this function.
    """
    dtype = query.dtype
    query, key, v = at_least_single(query), at_least_single(key), at_least_single(v)
    if features is not None and feature_map is not None:
        features, feature_map = at_least_single(features), at_least_single(feature_map)
        energy = _sigmoid_sum(query, key, v, features, feature_map)
    elif _worth_reciprocals(query, key):
        energy = _guarded_reciprocal_sum(query, key, v)
    else:
        energy = _sigmoid_sum(query, key, v, None, None)
    return energy.to(dtype)


def _worth_reciprocals(query: Query, key: Key) -> bool:
    """Whether one unit of a row is work enough; decided by shapes that rows of a batch share.

    Compilers fuse the other form by themselves, and GPUs wait for memory in either.
    """
    queries, keys = query.shape[2], key.shape[2]
    large = min(queries, keys) >= LONG and queries * keys >= MANY_PAIRS
    return large and query.device.type == "cpu" and not torch.compiler.is_compiling()


def _guarded_reciprocal_sum(query: Query, key: Key, v: Float[Tensor, "H D 1"]) -> Energy:
    """Reciprocals where no exponential leaves the format; sigmoids for queries that are too large.

    A query decides by itself: as long as it is within the limit, a key beyond the reach has
    saturated its tanh and may be clamped. So no other query, key or row changes what it gets.
    """
    reach, margin = _reach(query.dtype)
    wild = query.detach().abs().amax(-1, keepdim=True) > reach - margin
    tame_key = key.clamp(-reach, reach)
    if not bool(wild.any()):
        return ReciprocalSum.apply(query, tame_key, v)
    tame = ReciprocalSum.apply(query.masked_fill(wild, 0.0), tame_key, v)
    return torch.where(wild, _sigmoid_sum(query, key, v, None, None), tame)


def _reach(dtype: torch.dtype) -> tuple[float, float]:
    """Largest safe exponent, and the one from which on tanh is one within rounding."""
    info = torch.finfo(dtype)
    return 0.8 * math.log(info.max), -1.25 * math.log(info.eps)


def _sigmoid_sum(
    query: Query,
    key: Key,
    v: Float[Tensor, "H D 1"],
    features: Features | None,
    feature_map: Float[Tensor, "H F D"] | None,
) -> Energy:
    # a compiler makes its own blocks
    if torch.compiler.is_compiling() or (query.shape[2] == 1 and key.numel() <= FEW_NUMBERS):
        return _project(torch.sigmoid(_inside(query, key, features, feature_map)), v)
    return _SigmoidSum.apply(query, key, v, features, feature_map)


def _inside(
    query: Query, key: Key, features: Features | None, feature_map: Tensor | None
) -> Float[Tensor, "B H L S D"]:
    hidden = query.unsqueeze(3) + key.unsqueeze(2)
    if features is not None and feature_map is not None:
        hidden = hidden + per_head_linear(features, feature_map)
    return hidden


def _project(hidden: Float[Tensor, "B H L S D"], v: Float[Tensor, "H D 1"]) -> Energy:
    """2 hidden.v - sum(v)."""
    shape = hidden.shape[:-1]
    doubled = 2 * v
    if shape[1] == 1:
        # a view, not doubled[0]: indexing would write a whole gradient for every use
        energy = (hidden.flatten(0, 3) @ doubled.flatten(0, 1)).view(shape)
    else:
        # with the vector on the left, the batched product is five times faster
        turned = hidden.flatten(2, 3).transpose(-1, -2)
        energy = (doubled.transpose(1, 2) @ turned).view(shape)
    return energy - v.sum(1, keepdim=True)


class _SigmoidSum(torch.autograd.Function):
    """sum_d 2 v_d sigmoid(x_d) - v_d by blocks of rows and queries, all units of a pair at once."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        v: Tensor,
        features: Tensor | None,
        feature_map: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(query, key, v, features, feature_map)
        pieces = _blocks_of(query, key)
        if len(pieces) == 1:
            return _project(_inside(query, key, features, feature_map).sigmoid_(), v)
        energy = query.new_empty(*query.shape[:3], key.shape[2])
        for row, at in pieces:
            hidden = _inside(query[row, :, at], key[row], _cut(features, row, at), feature_map)
            energy[row, :, at] = _project(hidden.sigmoid_(), v)
        return energy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Slopes:
        query, key, v, features, feature_map = ctx.saved_tensors
        pieces = _blocks_of(query, key)
        if len(pieces) == 1:
            found = _sigmoid_slopes(grad, query, key, v, features, feature_map)
        else:
            found = (
                torch.zeros_like(query),
                torch.zeros_like(key),
                torch.zeros_like(v),
                None if features is None else torch.zeros_like(features),
                None if feature_map is None else torch.zeros_like(feature_map),
            )
            for row, at in pieces:
                given = (grad[row, :, at], query[row, :, at], key[row], v)
                part = _sigmoid_slopes(*given, _cut(features, row, at), feature_map)
                rows = (found[0][row, :, at], found[1][row], found[2])
                into = (*rows, _cut(found[3], row, at), found[4])
                for total, more in zip(into, part, strict=True):
                    if total is not None and more is not None:
                        total.add_(more)
        scale = 2 * v.transpose(1, 2)
        to_v = 2 * found[2] - grad.sum((0, 2, 3)).view(-1, 1, 1)
        return found[0] * scale, found[1] * scale, to_v, *found[3:]


def _blocks_of(query: Tensor, key: Tensor) -> list[Block]:
    return list(blocks(query.shape[0], query.shape[2], block_steps(query, key.shape[2])))


def _sigmoid_slopes(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    v: Tensor,
    features: Tensor | None,
    feature_map: Tensor | None,
) -> Slopes:
    """What a block adds to the gradients; 2 v waits until the sums of the first two are short."""
    hidden = _inside(query, key, features, feature_map).sigmoid_()
    to_v = (grad.flatten(2).unsqueeze(2) @ hidden.flatten(2, 3)).sum(0).transpose(1, 2)
    slope = torch.addcmul(hidden, hidden, hidden, value=-1, out=hidden)
    slope *= grad.unsqueeze(-1)
    to_query = slope.sum(3)
    # over a single query, a sum would be a slow copy
    to_key = slope.sum(2) if slope.shape[2] > 1 else slope.squeeze(2)
    if features is None or feature_map is None:
        return to_query, to_key, to_v, None, None
    slope = slope * (2 * v.transpose(1, 2).unsqueeze(2))
    to_features = per_head_linear(slope, feature_map.transpose(1, 2))
    wide = features.expand(*slope.shape[:-1], -1)
    to_map = torch.einsum("bhlsf,bhlsd->hfd", wide, slope)
    return to_query, to_key, to_v, to_features.sum_to_size(features.shape), to_map


def _cut(features: Tensor | None, row: slice, at: slice) -> Tensor | None:
    """Features of a block; an axis of one is shared by all queries."""
    if features is None:
        return None
    return features[row] if features.shape[2] == 1 else features[row, :, at]
