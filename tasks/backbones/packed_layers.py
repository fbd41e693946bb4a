"""Recurrent layers over packed sentences, with a backward pass that is linear in their length.

The results of `nn.GRU` and `nn.LSTM`, by the same operations in the same order, bit for bit. On a
CPU torch cuts the input of each step out of that of all steps by a slice, whose gradient is as
large as the whole, so that its backward pass is quadratic in the length (torch 2.13, `PackedLayer`
in `aten/src/ATen/native/RNN.cpp`). Here one split has one gradient. GPUs have fused kernels for it.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

Carried = tuple[Tensor, ...]
"""What goes from step to step: the state, and the cell of an LSTM."""
Product = Callable[[Tensor, Tensor], Callable[[Tensor], Tensor]]
"""Makes the linear map of a matrix and a bias, which every step asks."""
Direction = tuple[Float[Tensor, "N D"], Carried]
"""States of all packed tokens, and what each sentence carries after its last one, `B D`."""


def single(weight: Tensor, bias: Tensor) -> Callable[[Tensor], Tensor]:
    """A linear map in the format of its numbers."""
    return partial(functional.linear, weight=weight, bias=bias)


def torch_would_slice(rnn: nn.GRU | nn.LSTM, packed: PackedSequence) -> bool:
    """Whether torch itself loops over steps: on a CPU, but for LSTMs over equally long sentences.

    Those go to oneDNN in one piece. Layers of other kinds than torch's read by themselves.
    """
    if type(rnn) not in (nn.GRU, nn.LSTM):
        return False
    equally_long = bool((packed.batch_sizes == packed.batch_sizes[0]).all())
    return packed.data.is_cpu and not (isinstance(rnn, nn.LSTM) and equally_long)


def read_packed(
    rnn: nn.GRU | nn.LSTM, packed: PackedSequence, product: Product = single
) -> tuple[PackedSequence, Float[Tensor, "n B D"]]:
    """Run all layers; returns the top layer's states, and last ones a layer and direction."""
    data, last = _read_layers(rnn, packed.data, packed.batch_sizes.tolist(), None, product)
    states = torch.stack([end[0] for end in last])
    return packed._replace(data=data), _unsorted(states, packed.unsorted_indices)


def read_padded(
    rnn: nn.GRU | nn.LSTM,
    x: Float[Tensor, "B L E"],
    first: Sequence[Float[Tensor, "n B D"]] | None,
    product: Product,
) -> tuple[Float[Tensor, "B L W"], tuple[Float[Tensor, "n B D"], ...]]:
    """Run all layers over equally long sentences, from what is carried before them, if anything."""
    rows, length = x.shape[:2]
    data = x.transpose(0, 1).flatten(0, 1)
    data, last = _read_layers(rnn, data, [rows] * length, first, product)
    states = data.unflatten(0, (length, rows)).transpose(0, 1)
    return states, tuple(torch.stack(parts) for parts in zip(*last, strict=True))


def _read_layers(
    rnn: nn.GRU | nn.LSTM,
    data: Float[Tensor, "N E"],
    rows: list[int],
    first: Sequence[Float[Tensor, "n B D"]] | None,
    product: Product,
) -> tuple[Float[Tensor, "N D"], list[Carried]]:
    """States of the top layer, and what each layer and direction carries in the end."""
    last: list[Carried] = []
    ways = 2 if rnn.bidirectional else 1
    zero = data.new_zeros(rows[0], rnn.hidden_size)
    for layer in range(rnn.num_layers):
        found = []
        for way, own in enumerate(rnn.all_weights[ways * layer : ways * (layer + 1)]):
            begin: Carried = (zero, zero) if isinstance(rnn, nn.LSTM) else (zero,)
            if first is not None:
                begin = tuple(x[ways * layer + way] for x in first)
            found.append(_read(own, data, rows, begin, product, back=bool(way)))
        data = torch.cat([states for states, _ in found], -1) if ways > 1 else found[0][0]
        last += [end for _, end in found]
    return data, last


def _read(
    weights: Sequence[Tensor],
    data: Float[Tensor, "N E"],
    rows: list[int],
    first: Carried,
    product: Product,
    *,
    back: bool,
) -> Direction:
    """One layer in one direction; `rows` of the sentences, longest first, have each step."""
    from_input, from_state, input_bias, state_bias = weights
    given = product(from_input, input_bias)(data).split(rows)
    own = product(from_state, state_bias)
    carried = tuple(x[: rows[-1]] for x in first) if back else first
    states: list[Tensor] = []
    ended: list[Carried] = []
    for inputs in given[::-1] if back else given:
        before, now = len(carried[0]), len(inputs)
        if now < before:
            ended.append(tuple(x[now:] for x in carried))
            carried = tuple(x[:now] for x in carried)
        elif now > before:
            carried = tuple(
                torch.cat((x, start[before:now])) for x, start in zip(carried, first, strict=True)
            )
        carried = step(inputs, own(carried[0]), carried)
        states.append(carried[0])
    last = tuple(torch.cat(parts) for parts in zip(carried, *reversed(ended), strict=True))
    return torch.cat(states[::-1] if back else states), last


def step(given: Tensor, own: Tensor, carried: Carried) -> Carried:
    """One step of a cell; `given` is the input's part of the gates, `own` the state's.

    Gates are in torch's order, and what torch does in position is in position: vectors and what is
    left over at the end of a row round differently, so that another layout gives other bits.
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


def _unsorted(
    last: Float[Tensor, "n B D"], order: Int[Tensor, " B"] | None
) -> Float[Tensor, "n B D"]:
    return last if order is None else last.index_select(1, order)
