"""Products with weights in bfloat16, in networks whose numbers are float32.

Processors with instructions for bfloat16 take such a product in about half the time, but small ones
in more. Weights, their gradients, states, gates, and what attention computes between its
projections stay in float32.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from bench.api.slot import Slot
from tasks.backbones.packed_layers import read_packed, read_padded
from tasks.backbones.recurrence import Carried
from tasks.backbones.rounded_product import RoundedProduct

Precision = Literal["float32", "bfloat16"]


class Bfloat16Linear(nn.Linear):
    """A linear map whose product is taken in bfloat16."""

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Map the last dimension."""
        return RoundedProduct(self.weight, self.bias)(x)


class Bfloat16Logits(Bfloat16Linear):
    """One whose product stays in bfloat16: whoever reads logits widens them, a few at a time."""

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Map the last dimension."""
        return RoundedProduct(self.weight, self.bias, widens=False)(x)


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
            return read_packed(self, x, rounded=True)
        first = None if hidden is None else (hidden,)
        states, (last,) = read_padded(self, x, first, rounded=True)
        return states, last


class Bfloat16LSTM(nn.LSTM):
    """Layers of long short-term memory, batch first, whose products are taken in bfloat16."""

    def forward(self, x: Any, carried: Any = None) -> Any:
        """Read padded sentences as `nn.LSTM` does; of packed ones, last states without cells."""
        if isinstance(x, PackedSequence):
            return read_packed(self, x, rounded=True)
        return read_padded(self, x, carried, rounded=True)


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
        return _step(of_input(x), of_state(state), (state,))[0]


class Bfloat16LSTMCell(RoundedCell, nn.LSTMCell):
    """A step of long short-term memory."""

    def forward(
        self, x: Float[Tensor, "B E"], carried: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
        """One step."""
        zero = x.new_zeros(len(x), self.hidden_size)
        state, cell = (zero, zero) if carried is None else carried
        of_input, of_state = self.rounded()
        state, cell = _step(of_input(x), of_state(state), (state, cell))
        return state, cell


def _step(given: Tensor, own: Tensor, carried: Carried) -> Carried:
    """One step of a cell; `given` is the input's part of the gates, `own` the state's.

    Gates are in torch's order.
    """
    if len(carried) == 2:
        entering, forgetting, fresh, leaving = own.add_(given).unsafe_chunk(4, 1)
        entering, forgetting = entering.sigmoid_(), forgetting.sigmoid_()
        cell = (forgetting * carried[1]).add_(entering * fresh.tanh_())
        return leaving.sigmoid_() * cell.tanh(), cell
    for_reset, for_keeping, fresh = given.unsafe_chunk(3, 1)
    own_reset, own_keeping, own_fresh = own.unsafe_chunk(3, 1)
    reset = own_reset.add_(for_reset).sigmoid_()
    keeping = own_keeping.add_(for_keeping).sigmoid_()
    proposed = fresh.add(own_fresh.mul_(reset)).tanh_()
    return ((carried[0] - proposed).mul_(keeping).add_(proposed),)


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


def vocabulary_matrix(width: int, vocab: int, precision: Precision) -> nn.Linear:
    """The last layer of a network, with a product in this precision."""
    kind = Bfloat16Logits if precision == "bfloat16" else nn.Linear
    return kind(width, vocab)
