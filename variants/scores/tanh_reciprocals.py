"""Sums over hidden units of v * tanh(query + key), as quotients of exponentials; see `tanh_sum`."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from variants.scores.pair_blocks import Block, blocks, unit_steps


class ReciprocalSum(torch.autograd.Function):
    """sum_d v_d - 2 v_d K_d / (K_d + Q_d), unit by unit, each for a block of rows and queries."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, v: Tensor) -> Tensor:
        """Energies `B H L S`."""
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
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of query, key and v; the blocks are computed again."""
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
    return blocks(rows, queries, unit_steps(queries, keys))


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
