"""All steps of a recurrent layer as one operation, with its backward pass written out.

Cho et al., 2014, "Learning phrase representations using RNN encoder-decoder",
https://arxiv.org/abs/1406.1078, section 2.3; Hochreiter and Schmidhuber, 1997, "Long short-term
memory". Gates are in torch's order, and the equations are those of `nn.GRU` and `nn.LSTM`.

A step is a few operations on small matrices, and an operation that autograd records costs about as
much as it computes. Here nothing is recorded: what only depends on one step is computed for all
steps at once, and the gradient of a matrix is one product. In memory: four numbers a unit and step
of a gated unit, five of an LSTM.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from tasks.backbones.rounded_product import BLOCK, is_large, rounded, whole_blocks

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward
Carried = tuple[Tensor, ...]
"""What goes from step to step, `B D`: the state, and the cell of an LSTM."""


def read_steps(
    given: Float[Tensor, "N G"],
    weight: Float[Tensor, "G D"],
    bias: Float[Tensor, " G"],
    first: Carried,
    rows: list[int],
    *,
    back: bool,
    rounded: bool,
) -> tuple[Float[Tensor, "N D"], Carried]:
    """States of all tokens, and what each sentence carries after its last one.

    All is computed in the format of the weights, also where networks are trained in half precision
    and what is given comes from a product.

    Args:
        given: The input's part of the gates: of every sentence's first token, then of the second
            ones, and so on.
        weight: Matrix of the state.
        bias: Its bias.
        first: What is carried before the first step; with a cell, an LSTM is read.
        rows: Sentences that have a token at each step, the longest first.
        back: Whether the last token is read first.
        rounded: Whether products that are large enough are taken in bfloat16.
    """
    kind = _GRU if len(first) == 1 else _LSTM
    reading = _Reading(rows, back, rounded and is_large(max(rows), weight))
    begin = (x.to(weight.dtype) for x in first)
    states, *last = kind.apply(reading, given.to(weight.dtype), weight, bias, *begin)
    return states, tuple(last)


class _Reading(NamedTuple):
    """How tokens are read; the arguments of `read_steps`."""

    rows: list[int]
    back: bool
    rounded: bool

    def steps(
        self, parts: Sequence[Float[Tensor, "N ..."]], *, reverse: bool = False
    ) -> Iterator[tuple[Any, ...]]:
        """Where each step begins and its rows of everything, in the order of reading.

        Args:
            parts: What has a row for each token.
            reverse: Whether the step that was read last comes first.
        """
        starts = list(accumulate(self.rows, initial=0))[:-1]
        steps = list(zip(starts, *(part.split(self.rows) for part in parts), strict=True))
        return reversed(steps) if self.back != reverse else iter(steps)


class _GRU(torch.autograd.Function):
    """s = n + z (s' - n), with n = tanh(given + r own), of the gates r and z."""

    @staticmethod
    def forward(
        ctx: Any,
        reading: _Reading,
        given: Float[Tensor, "N G"],
        weight: Float[Tensor, "G D"],
        bias: Float[Tensor, " G"],
        first: Float[Tensor, "B D"],
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "B D"]]:
        count, width = len(given), weight.shape[1]
        product = _Products(weight.T, bias, reading)
        own = torch.empty_like(given)
        fresh, states = given.new_empty(count, width), given.new_empty(count, width)
        last = first.clone()
        (gates, own_fresh), others = (x.split((2 * width, width), 1) for x in (own, given))
        parts = (gates, *gates.chunk(2, 1), own_fresh, *others, fresh, states)
        for (
            at,
            both,
            reset,
            keeping,
            kept,
            given_both,
            given_fresh,
            proposed,
            state,
        ) in reading.steps(parts):
            before = last[: len(state)]
            said = product(before, at)
            torch.add(given_both, said[:, : 2 * width], out=both).sigmoid_()
            kept.copy_(said[:, 2 * width :])
            torch.addcmul(given_fresh, reset, kept, out=proposed).tanh_()
            torch.lerp(proposed, before, keeping, out=before)
            state.copy_(before)
        ctx.save_for_backward(own, fresh, states, weight, product.given)
        ctx.reading = reading
        return states, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        own, fresh, states, weight, before = ctx.saved_tensors
        reset, keeping, own_fresh = own.unflatten(1, (3, -1)).unbind(1)
        leaving = 1 - keeping
        of_fresh = tanh_backward(leaving, fresh)
        gates = torch.empty_like(own).unflatten(1, (3, -1))
        sigmoid_backward(of_fresh * own_fresh, reset, grad_input=gates[:, 0])
        torch.mul(states - fresh, leaving, out=gates[:, 1])
        torch.mul(of_fresh, reset, out=gates[:, 2])
        product = _Products(weight, None, ctx.reading, gates.flatten(1))
        of_states, of_first = torch.empty_like(states), grads[1].clone()
        parts = (gates, gates.flatten(1), keeping, grads[0], of_states)
        for at, every, flat, kept, said, total in ctx.reading.steps(parts, reverse=True):
            carried = of_first[: len(said)]
            torch.add(carried, said, out=total)
            every.mul_(total.unsqueeze(1))
            torch.mul(total, kept, out=carried).add_(product(flat, at))
        found = product.of_weight(before, weight), gates.sum(0).flatten()
        # from here on that of the input, which the reset gate does not scale
        torch.mul(of_states, of_fresh, out=gates[:, 2])
        return None, gates.flatten(1), *found, of_first


class _LSTM(torch.autograd.Function):
    """c = f c' + i g, s = o tanh(c), of the gates i, f, g and o."""

    @staticmethod
    def forward(
        ctx: Any,
        reading: _Reading,
        given: Float[Tensor, "N G"],
        weight: Float[Tensor, "G D"],
        bias: Float[Tensor, " G"],
        first: Float[Tensor, "B D"],
        first_cell: Float[Tensor, "B D"],
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "B D"], Float[Tensor, "B D"]]:
        count, width = len(given), weight.shape[1]
        product = _Products(weight.T, bias, reading)
        own = torch.empty_like(given)
        cells, states = given.new_empty(count, width), given.new_empty(count, width)
        last, last_cell = first.clone(), first_cell.clone()
        opening, fresh, leaving = own.split((2 * width, width, width), 1)
        parts = (own, given, opening, fresh, leaving, *opening.chunk(2, 1), cells, states)
        for at, whole, inputs, both, new, out, entering, forgetting, kept, state in reading.steps(
            parts
        ):
            before, cell = last[: len(state)], last_cell[: len(state)]
            torch.add(inputs, product(before, at), out=whole)
            both.sigmoid_()
            new.tanh_()
            out.sigmoid_()
            cell.mul_(forgetting).addcmul_(entering, new)
            kept.copy_(cell)
            torch.mul(out, torch.tanh(cell), out=state)
            before.copy_(state)
        ctx.save_for_backward(own, cells, weight, product.given)
        ctx.reading = reading
        return states, last, last_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        own, cells, weight, before = ctx.saved_tensors
        entering, forgetting, fresh, leaving = own.unflatten(1, (4, -1)).unbind(1)
        seen = cells.tanh()
        of_cell = tanh_backward(leaving, seen)
        gates = torch.empty_like(own).unflatten(1, (4, -1))
        sigmoid_backward(fresh, entering, grad_input=gates[:, 0])
        # f c', of which `c'` was not kept
        torch.mul(cells - entering * fresh, 1 - forgetting, out=gates[:, 1])
        tanh_backward(entering, fresh, grad_input=gates[:, 2])
        sigmoid_backward(seen, leaving, grad_input=gates[:, 3])
        product = _Products(weight, None, ctx.reading, gates.flatten(1))
        of_first, of_first_cell = grads[1].clone(), grads[2].clone()
        parts = (gates[:, :3], gates[:, 3], gates.flatten(1), of_cell, forgetting, grads[0])
        for at, inside, out, flat, shown, kept, said in ctx.reading.steps(parts, reverse=True):
            carried, cell = of_first[: len(said)], of_first_cell[: len(said)]
            carried.add_(said)
            cell.addcmul_(carried, shown)
            inside.mul_(cell.unsqueeze(1))
            out.mul_(carried)
            carried.copy_(product(flat, at))
            cell.mul_(kept)
        found = product.of_weight(before, weight), gates.sum(0).flatten()
        return None, gates.flatten(1), *found, of_first, of_first_cell


class _Products:
    """Products of a matrix with the rows of each step; what was multiplied is kept."""

    def __init__(
        self,
        matrix: Float[Tensor, "M K"],
        bias: Float[Tensor, " K"] | None,
        reading: _Reading,
        given: Float[Tensor, "N M"] | None = None,
    ) -> None:
        self.matrix, self.bias, self.rounded = matrix, bias, reading.rounded
        self.copies = reading.rounded or given is None
        count, most = sum(reading.rows), max(reading.rows)
        if reading.rounded:
            self.matrix = rounded(matrix)
            self.bias = None if bias is None else rounded(bias)
            # each step takes a multiple of `BLOCK` rows; what the others hold is not looked at
            self.given = self.matrix.new_empty(whole_blocks(count) + BLOCK, len(matrix))
            self.given[count:] = 0  # but here, in the product of all steps
            self.said = self.matrix.new_empty(whole_blocks(most), matrix.shape[1])
        else:
            self.given = matrix.new_empty(count, len(matrix)) if given is None else given
            self.said = matrix.new_empty(most, matrix.shape[1])

    def __call__(self, x: Float[Tensor, "n M"], at: int) -> Float[Tensor, "n K"]:
        """Multiply the rows of the step that begins at a row; valid until the next call."""
        if self.copies:
            self.given[at : at + len(x)] = x.bfloat16() if self.rounded else x
        rows = whole_blocks(len(x)) if self.rounded else len(x)
        given, said = self.given[at : at + rows], self.said[:rows]
        if self.bias is None:
            torch.mm(given, self.matrix, out=said)
        else:
            torch.addmm(self.bias, given, self.matrix, out=said)
        return said[: len(x)].bfloat16() if self.rounded else said[: len(x)]

    def of_weight(
        self, before: Float[Tensor, "N D"], weight: Float[Tensor, "M D"]
    ) -> Float[Tensor, "M D"]:
        """Gradient of the weight, of what the forward pass multiplied."""
        product = self.given.T @ before
        return product.bfloat16().to(weight.dtype) if self.rounded else product
