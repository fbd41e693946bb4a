"""Products with weights in bfloat16, in networks whose numbers are float32.

Processors with instructions for bfloat16 take such a product in about half the time, but small ones
in more. Weights, their gradients, states, gates, and what attention computes between its
projections stay in float32.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from bench.api.slot import Slot
from tasks.backbones.packed_layers import read_packed, read_padded, step

Precision = Literal["float32", "bfloat16"]
SMALL = 2**22
"""Multiplications of a product that is faster in float32, forward and backward (one core of an AMD
EPYC with such instructions)."""
BLOCK = 64
"""Rows of a product are a multiple of this. oneDNN compiles code for every new shape, which takes
longer than the product; batches of sentences have any number of words."""


Seen = dict[int, list[tuple[Tensor, Tensor]]]
"""By backward pass: what each step multiplied, and the gradient of what it said."""


class RoundedProduct:
    """x W' + b in bfloat16, for all steps of a sequence.

    The matrix is rounded once, and its gradient is one product of all steps.
    """

    def __init__(self, weight: Float[Tensor, "N M"], bias: Float[Tensor, " N"] | None) -> None:
        self.weight, self.bias = weight, bias
        self.matrix = weight.detach().bfloat16()
        self.rounded_bias = None if bias is None else bias.detach().bfloat16()
        self.seen: Seen = {}
        """Empty, but in a backward pass that asks for the gradient of the weights."""
        self.gathering = _Gathering.apply(weight, bias, self.seen)

    def __call__(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Multiply."""
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) * self.matrix.numel() < SMALL:
            return functional.linear(x, self.weight, self.bias)
        product = _Step.apply(rows, self.gathering, self.matrix, self.rounded_bias, self.seen)
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
            (grad.T @ given).to(ctx.dtype) if for_weight else None,
            grad.sum(0).to(ctx.dtype) if for_bias else None,
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
    ) -> Float[Tensor, "n N"]:
        given = _rounded(x)
        ctx.save_for_backward(given, matrix)
        ctx.seen, ctx.gatherer = seen, gathering.grad_fn
        return functional.linear(given, matrix, bias)[: len(x)].to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Float[Tensor, "n N"]) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        given, matrix = ctx.saved_tensors
        rounded = _rounded(grad)
        # A pass may ask for `x` alone, which `needs_input_grad` does not say, or end in an error.
        # Torch answers both for `register_multi_grad_hook`, by functions without public names.
        if ctx.needs_input_grad[1] and torch._C._will_engine_execute_node(ctx.gatherer):
            ctx.seen.setdefault(torch._C._current_graph_task_id(), []).append((given, rounded))
        for_x = (rounded @ matrix)[: len(grad)].to(grad.dtype) if ctx.needs_input_grad[0] else None
        return for_x, grad.new_zeros(()), None, None, None


def _rounded(x: Float[Tensor, "n M"]) -> Float[Tensor, "m M"]:
    """In bfloat16, with rows of zeros up to the next multiple of `BLOCK`."""
    rows = -(-len(x) // BLOCK) * BLOCK
    if rows == len(x):
        return x.bfloat16()
    padded = x.new_empty(rows, x.shape[1], dtype=torch.bfloat16)
    padded[: len(x)] = x
    padded[len(x) :] = 0
    return padded


class Bfloat16Linear(nn.Linear):
    """A linear map whose product is taken in bfloat16."""

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Map the last dimension."""
        return RoundedProduct(self.weight, self.bias)(x)


def product_of_columns(
    layer: nn.Linear, x: Float[Tensor, "*B m"], columns: slice
) -> Float[Tensor, "*B N"]:
    """The product with some columns of a matrix, in the precision of its layer."""
    matrix = layer.weight[:, columns]
    if isinstance(layer, Bfloat16Linear):
        return RoundedProduct(matrix, None)(x)
    return functional.linear(x, matrix)


class Bfloat16GRU(nn.GRU):
    """Gated recurrent layers, batch first, whose products are taken in bfloat16."""

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """Read padded or packed sentences, as `nn.GRU` does."""
        if isinstance(x, PackedSequence):
            return read_packed(self, x, RoundedProduct)
        first = None if hidden is None else (hidden,)
        states, (last,) = read_padded(self, x, first, RoundedProduct)
        return states, last


class Bfloat16LSTM(nn.LSTM):
    """Layers of long short-term memory, batch first, whose products are taken in bfloat16."""

    def forward(self, x: Any, carried: Any = None) -> Any:
        """Read padded sentences as `nn.LSTM` does; of packed ones, last states without cells."""
        if isinstance(x, PackedSequence):
            return read_packed(self, x, RoundedProduct)
        return read_padded(self, x, carried, RoundedProduct)


class RoundedCell(nn.RNNCellBase):
    """A step of a recurrent layer, whose products are taken in bfloat16."""

    products: tuple[RoundedProduct, RoundedProduct] | None = None
    """Those of the input and of the state, where a sequence is read."""

    def rounded(self) -> tuple[RoundedProduct, RoundedProduct]:
        """Both products, made anew unless a sequence is read."""
        return self.products or (
            RoundedProduct(self.weight_ih, self.bias_ih),
            RoundedProduct(self.weight_hh, self.bias_hh),
        )


class Bfloat16GRUCell(RoundedCell, nn.GRUCell):
    """A step of a gated recurrent unit."""

    def forward(
        self, x: Float[Tensor, "B E"], hidden: Float[Tensor, "B D"] | None = None
    ) -> Float[Tensor, "B D"]:
        """One step."""
        state = x.new_zeros(len(x), self.hidden_size) if hidden is None else hidden
        of_input, of_state = self.rounded()
        return step(of_input(x), of_state(state), (state,))[0]


class Bfloat16LSTMCell(RoundedCell, nn.LSTMCell):
    """A step of long short-term memory."""

    def forward(
        self, x: Float[Tensor, "B E"], carried: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
        """One step."""
        zero = x.new_zeros(len(x), self.hidden_size)
        state, cell = (zero, zero) if carried is None else carried
        of_input, of_state = self.rounded()
        state, cell = step(of_input(x), of_state(state), (state, cell))
        return state, cell


@contextmanager
def reading_a_sequence(network: nn.Module) -> Iterator[None]:
    """Let the cells of a network round their weights once for all steps."""
    with ExitStack() as stack:
        for cell in (one for one in network.modules() if isinstance(one, RoundedCell)):
            cell.products = cell.rounded()
            stack.callback(setattr, cell, "products", None)
        yield


ROUNDED: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: Bfloat16Linear,
    nn.GRU: Bfloat16GRU,
    nn.LSTM: Bfloat16LSTM,
    nn.GRUCell: Bfloat16GRUCell,
    nn.LSTMCell: Bfloat16LSTMCell,
}
"""What stands for each kind of layer where products are taken in bfloat16."""


def multiply_in(network: nn.Module, precision: Precision) -> None:
    """Take products with weights in this precision: in all layers, and in the heads of slots.

    Parts are made without knowing of it, and their weights stay as they are. Mechanisms, and the
    inputs that they want beside keys, keep their precision.
    """
    if precision == "float32":
        return
    for one in network.children():
        if type(one) in ROUNDED:
            one.__class__ = ROUNDED[type(one)]
        multiply_in(one.heads if isinstance(one, Slot) else one, precision)


def linear(inputs: int, outputs: int, precision: Precision) -> nn.Linear:
    """A linear map with a product in this precision."""
    kind = Bfloat16Linear if precision == "bfloat16" else nn.Linear
    return kind(inputs, outputs)
