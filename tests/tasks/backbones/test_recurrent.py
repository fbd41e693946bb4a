"""Stacked recurrent decoders: cells and layers below are carried from word to word."""

import pytest
import torch

from bench.api.trace import Mode
from tasks.backbones.recurrent_layers import advance, begin, recurrent

WIDTH, HIDDEN = 3, 4


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def lstm_step(rnn, layer, x, hidden, cell):
    gates = getattr(rnn, f"weight_ih_l{layer}") @ x + getattr(rnn, f"bias_ih_l{layer}")
    gates = gates + getattr(rnn, f"weight_hh_l{layer}") @ hidden
    gates = gates + getattr(rnn, f"bias_hh_l{layer}")
    entering, forgetting, fresh, leaving = gates.chunk(4)
    cell = sigmoid(forgetting) * cell + sigmoid(entering) * torch.tanh(fresh)
    return sigmoid(leaving) * torch.tanh(cell), cell


@pytest.mark.parametrize("layers", [1, 3])
def test_a_stack_of_lstms_equals_its_gates_written_out(layers, near):
    rnn = recurrent("lstm", WIDTH, HIDDEN, layers=layers).double()
    x, first = drawn(2, 5, WIDTH), drawn(2, HIDDEN)
    states, last, _ = advance(rnn, x, first, begin(rnn, first))
    for row in range(2):
        hidden = [first[row]] * layers
        cell = [torch.zeros(HIDDEN, dtype=torch.float64)] * layers
        for t in range(5):
            given = x[row, t]
            for layer in range(layers):
                hidden[layer], cell[layer] = lstm_step(
                    rnn, layer, given, hidden[layer], cell[layer]
                )
                given = hidden[layer]
            near(states[row, t], given)
        near(last[row], given)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_words_in_pieces_equal_words_at_once(cell, layers, near):
    rnn = recurrent(cell, WIDTH, HIDDEN, layers=layers).double()
    x, hidden = drawn(2, 6, WIDTH), drawn(2, HIDDEN)
    kept = begin(rnn, hidden)
    assert all(leaf.shape[0] == 2 for leaf in kept.values()), "leaves have the batch first"
    whole, end, after = advance(rnn, x, hidden, kept)
    parts = []
    for piece in x.split([1, 3, 2], 1):
        states, hidden, kept = advance(rnn, piece, hidden, kept)
        parts.append(states)
    near(torch.cat(parts, 1), whole)
    near(hidden, end)
    assert (
        set(kept)
        == set(after)
        == ({"below"} if layers > 1 else set()) | ({"cell"} if cell == "lstm" else set())
    )
    for name, leaf in kept.items():
        near(leaf, after[name])


@pytest.mark.parametrize("feeding", ["true", "false"])
def test_the_decoder_of_the_paper_can_be_asked_for(feeding, built):
    backbone, _, batch = built(
        backbone="rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn[cell=lstm,layers=4],"
        f"decoder=luong[cell=lstm,layers=4,input_feeding={feeding}]]"
    )
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    assert backbone.decoder.rnn.num_layers == 4
    for parameter in backbone.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
