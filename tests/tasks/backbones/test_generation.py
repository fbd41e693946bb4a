"""Greedy output, fed back as teacher-forced input, is what the network predicts."""

from dataclasses import replace

import pytest
import torch

from bench.api.trace import Mode

RNN = "rnn_seq2seq[hidden=16,embedding=8,decoder={}]"
TRANSFORMER = "transformer_seq2seq[width=16,heads=2,layers=2{}]"
PLACES = [
    ("additive", RNN.format("bahdanau"), ""),
    ("additive", RNN.format("bahdanau[output_layer_state=curr]"), ""),
    ("additive", RNN.format("luong"), ""),
    ("additive", RNN.format("luong[input_feeding=true]"), ""),
    ("tu_coverage", RNN.format("luong"), ""),
    ("mi_coverage", RNN.format("luong"), ""),
    ("mi_coverage[update=subtract]", RNN.format("bahdanau"), ""),
    ("cohn_structural", RNN.format("luong[input_feeding=true]"), ""),
    ("cohn_structural", TRANSFORMER.format(""), "cross"),
    ("hard_exact", RNN.format("luong"), ""),
    ("copynet", RNN.format("luong"), ""),
    ("copynet", RNN.format("bahdanau"), ""),
    ("copynet[selective_read=false]", TRANSFORMER.format(""), "cross"),
    ("pointer_net", RNN.format("luong"), ""),
    ("ssnt", RNN.format("target_only"), ""),
    ("additive[output=pointer_sentinel[window=3]]", RNN.format("luong"), ""),
    ("additive[output=neural_cache[window=3]]", RNN.format("bahdanau"), ""),
    ("pointer_sentinel", TRANSFORMER.format(""), "causal"),
    ("lexicon_linear", RNN.format("luong"), ""),
    ("additive", RNN.format("none_state"), ""),
    ("additive", RNN.format("none_input"), ""),
    ("scaled_dot", TRANSFORMER.format(""), "cross"),
    ("additive", TRANSFORMER.format(",norm=post"), "cross"),
    ("scaled_dot", TRANSFORMER.format(",short_convolution=3"), "causal"),
    ("scaled_dot", TRANSFORMER.format(",feed_convolution=4"), "causal"),
    ("additive", TRANSFORMER.format(""), "causal"),
    ("shaw_rpr", TRANSFORMER.format(""), "causal"),
    ("learned", TRANSFORMER.format(""), "causal"),
    ("linear_attention", TRANSFORMER.format(""), "causal"),
    ("scaled_dot", TRANSFORMER.format(""), "self"),
    ("sinusoid", TRANSFORMER.format(",positions_each_layer=true,norm_form=unbiased"), "causal"),
    ("additive", RNN.format("luong,source_order=reversed"), ""),
    ("additive", RNN.format("bahdanau,encoder=pyramid[layers=1]"), ""),
    ("additive", RNN.format("luong[cell=lstm,layers=2]"), ""),
    ("additive", RNN.format("lstmn"), ""),
    ("additive", RNN.format("lstmn[fusion=deep]"), ""),
    ("mlp_dot", RNN.format("las,encoder=pyramid[layers=2]"), ""),
    ("additive", RNN.format("gated"), ""),
    ("additive", RNN.format("gnmt"), ""),
]
LONGEST = 9


SEEDS = 8
"""Networks that are tried until enough different sentences were said."""


@pytest.mark.parametrize(("variant", "name", "slot"), PLACES)
def test_teacher_forcing_its_own_output_predicts_it_again(variant, name, slot, built):
    heard = set()
    for seed in range(SEEDS):
        backbone, _, batch = built(variant, backbone=name, slot=slot, rows=12, seed=seed)
        sharpen(backbone)
        said = backbone.generate(batch, LONGEST, Mode()).tokens
        assert len(said) == 12
        again = forced(backbone, batch, said)
        for row, words in enumerate(said):
            ended = [*words, 2][:LONGEST]
            assert again[row, : len(ended)].tolist() == ended
        heard |= set(said)
        if sum(len(set(row)) > 1 for row in heard) > 5:
            return
    pytest.fail(f"a few constants show nothing: {sorted(heard)}")


def sharpen(backbone) -> None:
    """Large logits, so that rounding never decides; words that move the state; some ends."""
    with torch.no_grad():
        backbone.project.weight.mul_(6)
        backbone.project.bias[:2] -= 100
        backbone.project.bias[2] -= 2
        backbone.target_embedding.weight.mul_(3)


def forced(backbone, batch, said):
    width = max(len(row) for row in said) + 1
    inputs = torch.zeros(len(said), width, dtype=torch.int64)
    inputs[:, 0] = 1
    for row, words in enumerate(said):
        known = [word if word < backbone.sizes.target_vocab else 3 for word in words]
        inputs[row, 1 : len(words) + 1] = torch.tensor(known, dtype=torch.int64)
    fed = replace(batch, inputs=inputs, targets=inputs, mask=inputs > 0, gold=None)
    trace = backbone(fed, Mode())
    return backbone.output.log_probs(trace, backbone.emit, fed).argmax(-1)


def test_copied_words_are_said_by_their_own_ids_and_read_as_unknown(built):
    backbone, task, batch = built(
        "pointer_generator",
        task="oov_copy[unknown=0.8]",
        backbone="rnn_seq2seq[hidden=16,embedding=8]",
        rows=8,
    )
    with torch.no_grad():
        backbone.output.gate.bias.fill_(-4.0)  # nearly all mass goes to copies
    said = backbone.generate(batch, LONGEST, Mode()).tokens
    copied = {word for row in said for word in row if word >= task.sizes.target_vocab}
    assert copied
    again = forced(backbone, batch, said)
    for row, words in enumerate(said):
        assert again[row, : len(words)].tolist() == list(words)
        unknown = [word for word in words if word >= task.sizes.target_vocab]
        assert set(unknown) <= set(batch.extended[row].tolist())


def test_decoding_stops_once_every_row_has_said_its_end(built):
    backbone, _, batch = built(backbone=RNN.format("luong"), rows=3)
    with torch.no_grad():
        backbone.project.bias[2] += 100
    found = backbone.generate(batch, LONGEST, Mode())
    assert found.tokens == ((), (), ())
    assert found.steps == 1


def test_a_row_that_has_ended_stays_ended_while_others_go_on(built):
    for name in (RNN.format("luong"), TRANSFORMER.format("")):
        mixed = 0
        for seed in range(SEEDS):
            backbone, _, batch = built(backbone=name, rows=12, seed=seed)
            sharpen(backbone)
            found = backbone.generate(batch, LONGEST, Mode())
            mixed += len({len(row) for row in found.tokens}) > 1
            assert all(2 not in row for row in found.tokens)
        assert mixed > 1, "rows of one batch must end at different places"


def test_a_longer_budget_only_adds_words(built):
    backbone, _, batch = built(backbone=TRANSFORMER.format(""), rows=8)
    sharpen(backbone)
    short = backbone.generate(batch, 3, Mode()).tokens
    long = backbone.generate(batch, LONGEST, Mode()).tokens
    assert all(row[: len(start)] == start for row, start in zip(long, short, strict=True))
    assert max(len(row) for row in short) == 3
