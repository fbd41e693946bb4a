"""The captioning decoder against its equations; its gate; keys without an order."""

from dataclasses import replace

import pytest
import torch

from bench.api.batch import Text
from bench.api.trace import Mode

BACKBONE = "rnn_seq2seq[hidden=16,embedding=8,decoder=gated{}]"


@pytest.mark.parametrize("gate", ["true", "false"])
def test_it_equals_the_equations(gate, built, near, logits, loops):
    backbone, _, batch = built("additive[width=9]", backbone=BACKBONE.format(f"[gate={gate}]"))
    (encoded,), trace = backbone.encode(batch, Mode()), backbone(batch, Mode())
    decoder, said = backbone.decoder, logits(backbone, trace)
    for row in range(len(batch.inputs)):
        states = list(encoded.states[row][batch.sources[0].mask[row]])
        hidden, cell = torch.tanh(loops.affine(decoder.start, encoded.summary[row])).chunk(2)
        for t, token in enumerate(batch.inputs[row]):
            word = backbone.target_embedding.weight[token]
            context, share = loops.ask(decoder.slots[0], hidden, states)
            if gate == "true":
                context = loops.sigmoid(loops.affine(decoder.gate, hidden)) * context
            hidden, cell = loops.lstm(
                lambda name: getattr(decoder.cell, name), torch.cat((word, context)), hidden, cell
            )
            near(trace.states[row, t], hidden)
            near(trace.context[row, t], context)
            near(trace.weights[row, t, : len(states)], torch.stack(share))
            read = word + loops.affine(decoder.of_state, hidden)
            read = read + loops.affine(decoder.of_context, context)
            near(said[row, t], loops.affine(backbone.project, read))


def test_an_open_gate_is_no_gate_and_a_closed_one_leaves_words_alone(built, near, logits):
    gated, _, batch = built("additive", backbone=BACKBONE.format(""))
    plain, _, _ = built("additive", backbone=BACKBONE.format("[gate=false]"))
    plain.load_state_dict({n: gated.state_dict()[n] for n in plain.state_dict()})
    assert set(gated.state_dict()) - set(plain.state_dict()) == {
        "decoder.gate.weight",
        "decoder.gate.bias",
    }
    before = logits(gated, gated(batch, Mode()))
    with torch.no_grad():
        gated.decoder.gate.weight.zero_()
        gated.decoder.gate.bias.fill_(1e3)
    opened = logits(gated, gated(batch, Mode()))
    near(opened, logits(plain, plain(batch, Mode())))
    assert (before - opened).abs().max() > 1e-3
    with torch.no_grad():
        gated.decoder.gate.bias.fill_(-1e3)
    closed = gated(batch, Mode())
    assert not closed.context.any()
    assert closed.weights.sum() > 0


def test_the_place_of_a_feature_does_not_matter(built, near, logits):
    """Regions of an image in another order are the same image."""
    backbone, _, batch = built(
        "image_attention",
        task="transduction[min_length=5,max_length=5,beyond=6]",
        backbone="rnn_seq2seq[hidden=16,embedding=8,encoder=embed]",
    )
    text = batch.sources[0]
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = replace(batch, sources=(Text(text.tokens[:, order], None),))
    one, two = backbone(batch, Mode()), backbone(moved, Mode())
    near(logits(backbone, two), logits(backbone, one))
    near(two.weights, one.weights[..., order])
    assert one.weights.std(-1).max() > 1e-3
