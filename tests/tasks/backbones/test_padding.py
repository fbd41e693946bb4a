"""A batch of mixed lengths says of each example what the example alone says."""

import pytest

from bench.api import registry
from bench.api.trace import Mode

pytestmark = pytest.mark.annotations
ENCODERS = (
    "birnn",
    "birnn[cell=lstm]",
    "birnn[summary=mean]",
    "uni_rnn",
    "uni_rnn[cell=lstm,layers=2]",
    "embed",
    "embed[positions=sinusoid]",
    "feed_forward",
    "feed_forward[layers=2]",
    "rationale",
    "cnn",
    "cnn[unit=tanh,kernel=5,positions=off]",
    "pyramid[layers=1]",
    "pyramid[layers=2,cell=gru]",
    "transformer",
    "transformer[norm=post,positions=learned]",
)
TRANSFORMERS = (
    ("scaled_dot", "cross", ""),
    ("additive", "cross", ""),
    ("scaled_dot", "causal", ""),
    ("scaled_dot", "self", ""),
    ("shaw_rpr", "self", ""),
    ("linear_attention", "self", ""),
    ("scaled_dot", "cross", ",norm=post"),
    ("scaled_dot", "cross", ",norm=off,feed_forward=0"),
    ("scaled_dot", "cross", ",short_convolution=3"),
    ("scaled_dot", "cross", ",feed_convolution=3"),
)


def test_every_registered_encoder_is_looked_at():
    found = {name.partition("[")[0] for name in ENCODERS}
    # features beside the words, and pictures, come with tests of their own
    assert found | {"multimodal", "grid_cnn"} == set(registry.registrations("encoder"))


def compare(found, alone, logits, near):
    backbone, _, batch = found
    lengths = batch.sources[0].mask.sum(1)
    assert len(set(lengths.tolist())) > 2, "lengths must differ"
    trace = backbone(batch, Mode())
    whole = logits(backbone, trace)
    nll = backbone.output.nll(trace, backbone.emit, batch)
    assert not nll[~batch.mask].any()
    for row in range(len(lengths)):
        single = alone(batch, row)
        by_itself = backbone(single, Mode())
        real = batch.mask[row]
        near(whole[row, real], logits(backbone, by_itself)[0])
        expected = backbone.output.nll(by_itself, backbone.emit, single)[0]
        near(nll[row, real], expected, 1e-5)


@pytest.mark.parametrize("variant", ["additive", "tu_coverage", "conv_attention"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_rnn_seq2seq_does_not_see_padding(encoder, variant, built, alone, logits, near):
    backbone = f"rnn_seq2seq[hidden=16,embedding=8,encoder={encoder}]"
    if encoder == "rationale":
        variant = f"{variant}[loss=rationale]"
    compare(built(variant, backbone=backbone, rows=6), alone, logits, near)


OTHERS = (
    "bahdanau",
    "none_state",
    "none_input",
    "lstmn",
    "lstmn[fusion=deep]",
    "las",
    "gated",
    "gnmt",
)


@pytest.mark.parametrize("decoder", OTHERS)
def test_other_decoders_do_not_see_padding(decoder, built, alone, logits, near):
    backbone = f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]"
    compare(built("additive", backbone=backbone, rows=6), alone, logits, near)


@pytest.mark.parametrize(("variant", "slot", "options"), TRANSFORMERS)
def test_transformer_seq2seq_does_not_see_padding(
    variant, slot, options, built, alone, logits, near
):
    backbone = f"transformer_seq2seq[width=16,heads=2,layers=2{options}]"
    compare(built(variant, backbone=backbone, slot=slot, rows=6), alone, logits, near)


def test_a_distribution_over_copied_words_does_not_see_padding(built, alone, near):
    backbone, _, batch = built("pointer_generator", backbone="rnn_seq2seq[hidden=16,embedding=8]")
    whole = backbone.output.log_probs(backbone(batch, Mode()), backbone.emit, batch)
    for row in range(len(whole)):
        single = alone(batch, row)
        by_itself = backbone.output.log_probs(backbone(single, Mode()), backbone.emit, single)
        near(whole[row, batch.mask[row]], by_itself[0])
