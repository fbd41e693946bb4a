"""The decoder with a tape against its equations, and against the LSTM that it contains."""

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.trace import Mode
from tasks.backbones.decoders import lstmn

BACKBONE = "rnn_seq2seq[hidden=16,embedding=8,decoder={}]"


def decoder(loops, decoder, hidden, words, states):
    """States, contexts and output layers of one example, from the equations of the paper."""
    affine, sigmoid, mixed = loops.affine, loops.sigmoid, loops.mixed
    tape, cells = [hidden], [torch.zeros_like(hidden)]
    recalled, context = torch.zeros_like(hidden), torch.zeros(decoder.context_width).double()
    size = len(hidden)
    for word in words:
        asked = affine(decoder.of_word, word) + affine(decoder.of_recalled, recalled)
        share = loops.softmax(
            [decoder.v.weight[0] @ torch.tanh(affine(decoder.of_tape, h) + asked) for h in tape]
        )
        recalled, remembered = mixed(share, tape), mixed(share, cells)
        gates = affine(decoder.gates, torch.cat((recalled, word)))
        cell = sigmoid(gates[size : 2 * size]) * remembered
        cell = cell + sigmoid(gates[:size]) * torch.tanh(gates[3 * size :])
        if decoder.deep:
            context, weights = loops.ask(
                decoder.slots[0], affine(decoder.ask, torch.cat((word, context))), states
            )
            gate = sigmoid(affine(decoder.gate, torch.cat((context, word))))
            cell = cell + gate * affine(decoder.cell, context)
        hidden = sigmoid(gates[2 * size : 3 * size]) * torch.tanh(cell)
        tape.append(hidden)
        cells.append(cell)
        if not decoder.deep:
            context, weights = loops.ask(decoder.slots[0], hidden, states)
        read = hidden
        if not decoder.deep:
            read = torch.tanh(affine(decoder.out, torch.cat((context, hidden))))
        yield hidden, context, weights, read


@pytest.mark.parametrize("fusion", ["shallow", "deep"])
def test_it_equals_the_equations(fusion, built, near, logits, loops):
    backbone, _, batch = built(
        "additive[width=9]", backbone=BACKBONE.format(f"lstmn[width=9,fusion={fusion}]")
    )
    (encoded,), trace = backbone.encode(batch, Mode()), backbone(batch, Mode())
    said = logits(backbone, trace)
    for row in range(len(batch.inputs)):
        states = list(encoded.states[row][batch.sources[0].mask[row]])
        hidden = torch.tanh(loops.affine(backbone.decoder.start, encoded.summary[row]))
        words = [backbone.target_embedding.weight[t] for t in batch.inputs[row]]
        steps = decoder(loops, backbone.decoder, hidden, words, states)
        for t, (state, context, weights, read) in enumerate(steps):
            near(trace.states[row, t], state)
            near(trace.context[row, t], context)
            near(trace.weights[row, t, : len(states)], torch.stack(weights))
            near(said[row, t], loops.affine(backbone.project, read))


def test_with_all_weight_on_the_last_state_it_is_the_lstm_decoder(built, near, logits, monkeypatch):
    taped, _, batch = built("additive", backbone=BACKBONE.format("lstmn"))
    plain, _, _ = built("additive", backbone=BACKBONE.format("luong[cell=lstm]"))
    shared = taped.state_dict()
    for name, value in plain.state_dict().items():
        if name in shared:
            value.copy_(shared[name])
    entering, forgetting, leaving, fresh = taped.decoder.gates.weight.chunk(4)
    weight = torch.cat((entering, forgetting, fresh, leaving))
    biases = taped.decoder.gates.bias.chunk(4)
    with torch.no_grad():
        plain.decoder.rnn.weight_hh_l0.copy_(weight[:, :16])
        plain.decoder.rnn.weight_ih_l0.copy_(weight[:, 16:])
        plain.decoder.rnn.bias_ih_l0.copy_(torch.cat((*biases[:2], biases[3], biases[2])))
        plain.decoder.rnn.bias_hh_l0.zero_()
    free = logits(taped, taped(batch, Mode()))

    def newest(energy):
        return (
            torch.nn.functional.one_hot(torch.tensor([energy.shape[1] - 1]), energy.shape[1])
            .double()
            .expand(len(energy), 1, -1)
        )

    monkeypatch.setattr(lstmn, "on_tape", newest)
    expected = logits(plain, plain(batch, Mode()))
    near(logits(taped, taped(batch, Mode())), expected)
    # one state lies on the tape before the first word, so that word has no choice
    near(free[:, 0], expected[:, 0])
    assert (free[:, 2:] - expected[:, 2:]).abs().max() > 1e-3


def test_deep_fusion_with_a_closed_gate_is_the_tape_alone(built, near):
    deep, _, batch = built("additive", backbone=BACKBONE.format("lstmn[fusion=deep]"))
    shallow, _, _ = built("additive", backbone=BACKBONE.format("lstmn"))
    same = {n: deep.state_dict().get(n, v) for n, v in shallow.state_dict().items()}
    shallow.load_state_dict(same)
    open_gate = deep(batch, Mode()).states
    with torch.no_grad():
        deep.decoder.gate.weight.zero_()
        deep.decoder.gate.bias.fill_(-1e3)
    near(deep(batch, Mode()).states, shallow(batch, Mode()).states)
    assert (open_gate - deep(batch, Mode()).states).abs().max() > 1e-3


def test_outputs_that_need_open_loop_states_stand_on_shallow_fusion_alone(built):
    built("hard_exact[decoder=lstmn]")
    with pytest.raises(Refused, match=r"hard_exact needs .*states"):
        built("hard_exact[decoder=lstmn[fusion=deep]]")


def test_a_width_below_one_is_refused(built):
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        built("additive", backbone=BACKBONE.format("lstmn[width=0]"))
