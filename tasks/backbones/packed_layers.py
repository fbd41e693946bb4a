"""Recurrent layers over packed or padded sentences, whose backward pass is written out.

The results of `nn.GRU` and `nn.LSTM` but for rounding. On a CPU torch records every step; and of
packed sentences it cuts the input of each step out of that of all steps by a slice, whose gradient
is as large as the whole, so that its backward pass is quadratic in the length (torch 2.13,
`PackedLayer` in `aten/src/ATen/native/RNN.cpp`). GPUs have fused kernels for it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from tasks.backbones.recurrence import Carried, read_steps
from tasks.backbones.rounded_product import RoundedProduct


def torch_would_slice(rnn: nn.GRU | nn.LSTM, packed: PackedSequence) -> bool:
    """Whether torch itself loops over steps: on a CPU, but for LSTMs over equally long sentences.

    Those go to oneDNN in one piece. Layers of other kinds than torch's read by themselves.
    """
    if type(rnn) not in (nn.GRU, nn.LSTM):
        return False
    equally_long = bool((packed.batch_sizes == packed.batch_sizes[0]).all())
    return packed.data.is_cpu and not (isinstance(rnn, nn.LSTM) and equally_long)


def read_packed(
    rnn: nn.GRU | nn.LSTM, packed: PackedSequence, *, rounded: bool = False
) -> tuple[PackedSequence, Float[Tensor, "n B D"]]:
    """Run all layers; returns the top layer's states, and last ones a layer and direction."""
    data, last = _read_layers(rnn, packed.data, packed.batch_sizes.tolist(), None, rounded)
    states = torch.stack([end[0] for end in last])
    return packed._replace(data=data), _unsorted(states, packed.unsorted_indices)


def read_padded(
    rnn: nn.GRU | nn.LSTM,
    x: Float[Tensor, "B L E"],
    first: Sequence[Float[Tensor, "n B D"]] | None,
    *,
    rounded: bool = False,
) -> tuple[Float[Tensor, "B L W"], tuple[Float[Tensor, "n B D"], ...]]:
    """Run all layers over equally long sentences, from what is carried before them, if anything."""
    rows, length = x.shape[:2]
    data = x.transpose(0, 1).flatten(0, 1)
    data, last = _read_layers(rnn, data, [rows] * length, first, rounded)
    states = data.unflatten(0, (length, rows)).transpose(0, 1)
    return states, tuple(torch.stack(parts) for parts in zip(*last, strict=True))


def _read_layers(
    rnn: nn.GRU | nn.LSTM,
    data: Float[Tensor, "N E"],
    rows: list[int],
    first: Sequence[Float[Tensor, "n B D"]] | None,
    rounded: bool,
) -> tuple[Float[Tensor, "N D"], list[Carried]]:
    """States of the top layer, and what each layer and direction carries in the end."""
    last: list[Carried] = []
    ways = 2 if rnn.bidirectional else 1
    zero = data.new_zeros(rows[0], rnn.hidden_size)
    for layer in range(rnn.num_layers):
        found = []
        for way, weights in enumerate(rnn.all_weights[ways * layer : ways * (layer + 1)]):
            begin: Carried = (zero, zero) if isinstance(rnn, nn.LSTM) else (zero,)
            if first is not None:
                begin = tuple(x[ways * layer + way] for x in first)
            from_input, from_state, input_bias, state_bias = weights
            given = _product(from_input, input_bias, data, rounded)
            found.append(
                read_steps(
                    given, from_state, state_bias, begin, rows, back=bool(way), rounded=rounded
                )
            )
        data = torch.cat([states for states, _ in found], -1) if ways > 1 else found[0][0]
        last += [end for _, end in found]
    return data, last


def _product(weight: Tensor, bias: Tensor, data: Tensor, rounded: bool) -> Tensor:
    """The input's part of the gates, of all steps."""
    if rounded:
        return RoundedProduct(weight, bias)(data)
    return functional.linear(data, weight, bias)


def _unsorted(
    last: Float[Tensor, "n B D"], order: Int[Tensor, " B"] | None
) -> Float[Tensor, "n B D"]:
    return last if order is None else last.index_select(1, order)
