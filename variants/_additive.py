"""Sums over hidden units of v * tanh(query + key + features), in memory of one number a pair.

Two exact forms of tanh, both of twice the argument, which is why queries, keys and features are
asked for doubled:

    tanh(x) = 2 sigmoid(2x) - 1             any range, features too
    tanh(q + k) = 1 - 2 K / (K + Q),        K = exp(-2k), Q = exp(2q): nothing but a sum and a
                                            quotient is left for a pair of query and key

The constants add up to the sum of v, which softmax would cancel and other normalizers would not, so
it stays. Nothing as wide as queries x keys x units is ever whole in memory: both forms work on
blocks that fit the cache, and their backward passes compute the blocks again.

Sharing one reciprocal between several units (a/A + b/B = (a B + b A) / (A B)) saves divisions
where these are dear, as on GPUs; in passes over memory it costs more than it saves.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bench.api.shapes import Energy, Features
from variants._math import at_least_single, per_head_linear

BLOCK = 2**18
"""Numbers computed at once: a megabyte in float32, about what a core has of its own cache."""
GPU_BLOCK = 2**24
"""The same where launching a kernel takes longer than a small block."""
MANY_PAIRS = 2**14
"""Pairs of query and key in a row, from which on one unit is work enough for a call of its own."""
LONG = 32
"""Queries and keys from which on that holds for either axis."""

Query = Float[Tensor, "B H L D"]
Key = Float[Tensor, "B H S D"]
Block = tuple[slice, slice]


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
        return _ReciprocalSum.apply(query, tame_key, v)
    tame = _ReciprocalSum.apply(query.masked_fill(wild, 0.0), tame_key, v)
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
    if torch.compiler.is_compiling():  # the compiler makes its own blocks
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
    if shape[1] == 1:
        energy = (hidden.flatten(0, 3) @ (2 * v[0])).view(shape)
    else:
        # with the vector on the left, the batched product is five times faster
        turned = hidden.flatten(2, 3).transpose(-1, -2)
        energy = ((2 * v).transpose(1, 2) @ turned).view(shape)
    return energy - v.sum(1, keepdim=True)


def block_steps(query: Query, keys: int) -> tuple[int, int]:
    """How many rows and queries make a block, with all heads and units of their pairs."""
    _, heads, queries, width = query.shape
    return _steps(queries, heads * keys * width, BLOCK if query.is_cpu else GPU_BLOCK)


def _steps(queries: int, size: int, block: int) -> tuple[int, int]:
    if queries * size <= block:
        return max(1, block // max(1, queries * size)), queries
    return 1, max(1, block // size)


def _blocks(rows: int, queries: int, steps: tuple[int, int]) -> Iterator[Block]:
    row_step, step = steps
    for row in range(0, rows, row_step):
        for at in range(0, queries, max(1, step)):
            yield slice(row, row + row_step), slice(at, at + step)


class _SigmoidSum(torch.autograd.Function):
    """sum_d 2 v_d sigmoid(x_d) - v_d by blocks of rows and queries, all units of a pair at once."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, v: Any, features: Any, feature_map: Any) -> Any:
        ctx.save_for_backward(query, key, v, features, feature_map)
        blocks = _blocks_of(query, key)
        if len(blocks) == 1:
            return _project(_inside(query, key, features, feature_map).sigmoid_(), v)
        energy = query.new_empty(*query.shape[:3], key.shape[2])
        for row, at in blocks:
            hidden = _inside(query[row, :, at], key[row], _cut(features, row, at), feature_map)
            energy[row, :, at] = _project(hidden.sigmoid_(), v)
        return energy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        query, key, v, features, feature_map = ctx.saved_tensors
        blocks = _blocks_of(query, key)
        if len(blocks) == 1:
            found = _sigmoid_slopes(grad, query, key, v, features, feature_map)
        else:
            found = tuple(None if x is None else torch.zeros_like(x) for x in ctx.saved_tensors)
            for row, at in blocks:
                given = (grad[row, :, at], query[row, :, at], key[row], v)
                part = _sigmoid_slopes(*given, _cut(features, row, at), feature_map)
                into: tuple[Any, ...] = (found[0][row, :, at], found[1][row], found[2])
                into = (*into, _cut(found[3], row, at), found[4])
                for total, more in zip(into, part, strict=True):
                    if total is not None:
                        total.add_(more)
        scale = 2 * v.transpose(1, 2)
        to_v = 2 * found[2] - grad.sum((0, 2, 3)).view(-1, 1, 1)
        return found[0] * scale, found[1] * scale, to_v, *found[3:]


def _blocks_of(query: Tensor, key: Tensor) -> list[Block]:
    return list(_blocks(query.shape[0], query.shape[2], block_steps(query, key.shape[2])))


def _sigmoid_slopes(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    v: Tensor,
    features: Tensor | None,
    feature_map: Tensor | None,
) -> tuple[Any, ...]:
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


class _ReciprocalSum(torch.autograd.Function):
    """sum_d v_d - 2 v_d K_d / (K_d + Q_d), unit by unit, each for a block of rows and queries."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, v: Any) -> Any:
        ctx.save_for_backward(query, key, v)
        up, down, unit = _by_unit(query.exp(), key.neg().exp(), v)
        energy = query.new_zeros(up.shape[1], up.shape[2], down.shape[3])
        scaled = -2 * unit * down
        for row, at in _pair_blocks(energy):
            block = energy[row, at]
            room = torch.empty_like(block)
            for q, k, vk in _units(up[:, row, at], down[:, row], scaled[:, row]):
                torch.add(k, q, out=room)
                block.addcdiv_(vk, room)
        return energy.view(*query.shape[:3], -1) + v.sum(1, keepdim=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        query, key, v = ctx.saved_tensors
        up, down, unit = _by_unit(query.exp(), key.neg().exp(), v)
        given = grad.flatten(0, 1)
        to_query, to_key, to_v = map(torch.zeros_like, (up, down, unit))
        for row, at in _pair_blocks(given):
            into_key, into_v = torch.empty_like(to_key[:, row]), torch.empty_like(to_v[:, row])
            _slopes(
                given[row, at], up[:, row, at], down[:, row], to_query[:, row, at], into_key, into_v
            )
            to_key[:, row] += into_key
            to_v[:, row] += into_v
        scale = 2 * unit
        mass = given.sum((1, 2)).view(-1, 1, 1)
        return (
            _by_row(scale * to_query, query),
            _by_row((scale * to_key).transpose(2, 3), key),
            _by_row(mass - 2 * to_v, query).sum(0).transpose(1, 2),
        )


def _pair_blocks(energy: Float[Tensor, "N L S"]) -> Iterator[Block]:
    """Blocks for one unit at a time."""
    rows, queries, keys = energy.shape
    return _blocks(rows, queries, _steps(queries, keys, BLOCK))


def _slopes(grad: Tensor, up: Tensor, down: Tensor, *sums: Tensor) -> None:
    """Write what a block adds to the gradients of query, key and v, but for factors of a unit."""
    ratio, slope = torch.empty_like(grad), torch.empty_like(grad)
    for q, k, to_query, to_key, to_v in _units(up, down, *sums):
        torch.add(k, q, out=ratio)
        torch.div(k, ratio, out=ratio)
        torch.mul(grad, ratio, out=slope)
        torch.sum(slope, (1, 2), keepdim=True, out=to_v)
        torch.addcmul(slope, slope, ratio, value=-1, out=slope)
        torch.sum(slope, 2, keepdim=True, out=to_query)
        torch.sum(slope, 1, keepdim=True, out=to_key)


def _units(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(part.unbind(0) for part in parts), strict=True)


def _by_unit(query: Tensor, key: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Units first and heads among the rows: `D BH L 1`, `D BH 1 S` and `D BH 1 1`."""
    rows = query.shape[0]
    up = query.flatten(0, 1).movedim(-1, 0).unsqueeze(-1)
    down = key.flatten(0, 1).movedim(-1, 0).unsqueeze(-2)
    unit = v.squeeze(-1).repeat(rows, 1).movedim(-1, 0)[..., None, None]
    return up.contiguous(), down.contiguous(), unit


def _by_row(found: Float[Tensor, "D N L 1"], like: Tensor) -> Float[Tensor, "B H L D"]:
    return found.squeeze(-1).movedim(0, -1).unflatten(0, like.shape[:2])
