"""A linear map whose product is taken in bfloat16, for all steps of a sequence.

Processors with instructions for bfloat16 take such a product in about half the time, but small ones
in more. Without these instructions it would take about seven times as long (one core of an AMD
EPYC with AVX2). There the rounded numbers are multiplied in float32, and the product is rounded:
its sums are of the same terms, as the product of two numbers in bfloat16 is exact in float32.
"""

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

SMALL = 2**22
"""Multiplications of a product that is faster in float32, forward and backward (one core of an AMD
EPYC with such instructions)."""
BLOCK = 64
"""Rows of a product are a multiple of this. oneDNN compiles code for every new shape, which takes
longer than the product; batches of sentences have any number of words."""


@cache
def format_of_factors(device: str) -> torch.dtype:
    """What rounded numbers are stored in to be multiplied, on a type of device."""
    if device != "cpu":
        return torch.bfloat16
    native = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def rounded(x: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """A factor of a product: its numbers in bfloat16, in the format that they are multiplied in."""
    return x.bfloat16().to(format_of_factors(x.device.type))


def is_large(rows: int, matrix: Float[Tensor, "N M"]) -> bool:
    """Whether the product of so many rows is taken in bfloat16."""
    return rows * matrix.numel() >= SMALL


Seen = dict[int, list[tuple[Tensor, Tensor]]]
"""By backward pass: what each step multiplied, and the gradient of what it said."""


class RoundedProduct:
    """x W' + b in bfloat16, for all steps of a sequence.

    The matrix is rounded once, and its gradient is one product of all steps. With `widens` products
    are handed on in the format of `x`; without it those of float32 stay in bfloat16.
    """

    def __init__(
        self,
        weight: Float[Tensor, "N M"],
        bias: Float[Tensor, " N"] | None,
        *,
        widens: bool = True,
    ) -> None:
        self.weight, self.bias, self.widens = weight, bias, widens
        self.matrix = rounded(weight.detach())
        self.rounded_bias = None if bias is None else rounded(bias.detach())
        self.seen: Seen = {}
        """Empty, but in a backward pass that asks for the gradient of the weights."""
        self.gathering = _Gathering.apply(weight, bias, self.seen)

    def __call__(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Multiply."""
        rows = x.reshape(-1, x.shape[-1])
        if not is_large(len(rows), self.weight):
            return functional.linear(x, self.weight, self.bias)
        narrow = x.dtype == torch.float32 and not self.widens
        said = torch.bfloat16 if narrow else x.dtype
        product = _Step.apply(rows, self.gathering, self.matrix, self.rounded_bias, self.seen, said)
        return product.view(*x.shape[:-1], -1)


class _Gathering(torch.autograd.Function):
    """Stands for the weights in every step; its backward pass comes after those of all steps."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, seen: Seen) -> Tensor:
        ctx.seen, ctx.dtype = seen, weight.dtype
        return weight.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        steps = zip(*ctx.seen.pop(torch._C._current_graph_task_id()), strict=True)
        given, grad = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in steps)
        for_weight, for_bias, _ = ctx.needs_input_grad
        return (
            (grad.T @ given).bfloat16().to(ctx.dtype) if for_weight else None,
            grad.sum(0).bfloat16().to(ctx.dtype) if for_bias else None,
            None,
        )


class _Step(torch.autograd.Function):
    """One product; the gradient of the weights is left to `_Gathering`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "n M"],
        gathering: Float[Tensor, ""],
        matrix: Float[Tensor, "N M"],
        bias: Float[Tensor, " N"] | None,
        seen: Seen,
        dtype: torch.dtype,
    ) -> Float[Tensor, "n N"]:
        given = rounded_rows(x)
        ctx.save_for_backward(given, matrix)
        ctx.seen, ctx.gatherer, ctx.dtype = seen, gathering.grad_fn, x.dtype
        return functional.linear(given, matrix, bias)[: len(x)].bfloat16().to(dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Float[Tensor, "n N"]) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        given, matrix = ctx.saved_tensors
        of_product = rounded_rows(grad)
        # A pass may ask for `x` alone, which `needs_input_grad` does not say, or end in an error.
        # Torch answers both for `register_multi_grad_hook`, by functions without public names.
        if ctx.needs_input_grad[1] and torch._C._will_engine_execute_node(ctx.gatherer):
            ctx.seen.setdefault(torch._C._current_graph_task_id(), []).append((given, of_product))
        for_x = None
        if ctx.needs_input_grad[0]:
            for_x = (of_product @ matrix)[: len(grad)].bfloat16().to(ctx.dtype)
        return for_x, grad.new_zeros((), dtype=ctx.dtype), None, None, None, None


def whole_blocks(rows: int) -> int:
    """The next multiple of `BLOCK`."""
    return -(-rows // BLOCK) * BLOCK


def rounded_rows(x: Float[Tensor, "n M"]) -> Float[Tensor, "m M"]:
    """A factor, with rows of zeros up to the next multiple of `BLOCK`."""
    rows = whole_blocks(len(x))
    if rows == len(x) or format_of_factors(x.device.type) == torch.float32:
        return rounded(x)
    padded = x.new_empty(rows, x.shape[1], dtype=torch.bfloat16)
    padded[: len(x)] = x
    padded[len(x) :] = 0
    return padded
