"""Recurrent layers over packed sentences, with a backward pass that is linear in their length.

The results of `nn.GRU` and `nn.LSTM`, by the same operations in the same order, bit for bit. On a
CPU torch cuts the input of each step out of that of all steps by a slice, whose gradient is as
large as the whole, so that its backward pass is quadratic in the length (torch 2.13, `PackedLayer`
in `aten/src/ATen/native/RNN.cpp`). Here one split has one gradient. GPUs have fused kernels for it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

Carried = tuple[Tensor, ...]
"""What goes from step to step: the state, and the cell of an LSTM."""
Direction = tuple[Float[Tensor, "N D"], Float[Tensor, "B D"]]
"""States of all packed tokens, and the last one of each sentence."""


def torch_would_slice(rnn: nn.GRU | nn.LSTM, packed: PackedSequence) -> bool:
    """Whether torch itself loops over steps: on a CPU, but for LSTMs over equally long sentences.

    Those go to oneDNN in one piece.
    """
    equally_long = bool((packed.batch_sizes == packed.batch_sizes[0]).all())
    return packed.data.is_cpu and not (isinstance(rnn, nn.LSTM) and equally_long)


def read_packed(
    rnn: nn.GRU | nn.LSTM, packed: PackedSequence
) -> tuple[PackedSequence, Float[Tensor, "n B D"]]:
    """Run all layers; returns the top layer's states, and last ones a layer and direction."""
    data: Tensor = packed.data
    last: list[Tensor] = []
    rows = packed.batch_sizes.tolist()
    ways = 2 if rnn.bidirectional else 1
    for layer in range(rnn.num_layers):
        weights = rnn.all_weights[ways * layer : ways * (layer + 1)]
        found = [_read(rnn, own, data, rows, back=bool(way)) for way, own in enumerate(weights)]
        data = torch.cat([states for states, _ in found], -1) if ways > 1 else found[0][0]
        last += [end for _, end in found]
    return packed._replace(data=data), _unsorted(torch.stack(last), packed.unsorted_indices)


def _read(
    rnn: nn.GRU | nn.LSTM,
    weights: Sequence[Tensor],
    data: Float[Tensor, "N E"],
    rows: list[int],
    *,
    back: bool,
) -> Direction:
    """One layer in one direction; `rows` of the sentences, longest first, have each step."""
    from_input, from_state, input_bias, state_bias = weights
    given = functional.linear(data, from_input, input_bias).split(rows)
    zero = data.new_zeros(rows[0], rnn.hidden_size)
    first: Carried = (zero, zero) if isinstance(rnn, nn.LSTM) else (zero,)
    carried = tuple(x[: rows[-1]] for x in first) if back else first
    states: list[Tensor] = []
    ended: list[Tensor] = []
    for step in given[::-1] if back else given:
        before, now = len(carried[0]), len(step)
        if now < before:
            ended.append(carried[0][now:])
            carried = tuple(x[:now] for x in carried)
        elif now > before:
            carried = tuple(
                torch.cat((x, start[before:now])) for x, start in zip(carried, first, strict=True)
            )
        carried = _step(step, functional.linear(carried[0], from_state, state_bias), carried)
        states.append(carried[0])
    last = torch.cat((carried[0], *reversed(ended)))
    return torch.cat(states[::-1] if back else states), last


def _step(given: Tensor, own: Tensor, carried: Carried) -> Carried:
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
