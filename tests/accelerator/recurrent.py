"""Recurrent layers in small operations: the host's fused ones know no other device."""

import torch
from torch._decomp import decompositions
from torch.nn.functional import linear


def _gru_cell(x, state, to_input, to_state, input_bias=None, state_bias=None):
    reset, update, new = linear(x, to_input, input_bias).chunk(3, 1)
    reset_state, update_state, new_state = linear(state, to_state, state_bias).chunk(3, 1)
    update = torch.sigmoid(update + update_state)
    new = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
    return new + update * (state - new)


def _lstm_cell(x, states, to_input, to_state, input_bias=None, state_bias=None):
    state, cell = states
    every = linear(x, to_input, input_bias) + linear(state, to_state, state_bias)
    enter, forget, new, leave = every.chunk(4, 1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


_CELLS = {torch._VF.gru_cell: _gru_cell, torch._VF.lstm_cell: _lstm_cell}
_LAYERS = {
    torch._VF.gru: (decompositions.gru_impl, decompositions.gru_impl_data),
    torch._VF.lstm: (decompositions.lstm_impl, decompositions.lstm_data_impl),
    torch._VF.rnn_tanh: (decompositions.rnn_tanh_input, decompositions.rnn_tanh_data),
    torch._VF.rnn_relu: (decompositions.rnn_relu_input, decompositions.rnn_relu_data),
}
"""For a padded batch, and for a packed one, whose second argument is the sizes of its steps."""


def recurrent(func, args, kwargs):
    """Call a function, or what stands for it here."""
    if func in _CELLS:
        return _CELLS[func](*args, **kwargs)
    if func in _LAYERS:
        sizes = args[1]
        packed = isinstance(sizes, torch.Tensor) and sizes.device.type == "cpu"
        return _LAYERS[func][packed](*args, **kwargs)
    return func(*args, **kwargs)
