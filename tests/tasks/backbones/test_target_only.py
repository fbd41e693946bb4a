"""The decoder over the target alone, and segment-to-segment transduction inside it."""

from dataclasses import replace

import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import Refused
from bench.api.trace import Mode

SMALL = "rnn_seq2seq[hidden=16,embedding=8]"
COPY = "transduction[rule=copy,min_length=4,max_length=5,vocab=6]"


def other_source(batch):
    tokens = batch.sources[0].tokens.clone()
    tokens[:, :3] = 9 - (tokens[:, :3] - 4)
    return replace(batch, sources=(Text(tokens, batch.sources[0].mask),))


def test_states_know_nothing_of_the_source_and_the_memory_does(built):
    backbone, _, batch = built("ssnt", backbone=SMALL, task=COPY)
    one, two = (backbone(b, Mode()) for b in (batch, other_source(batch)))
    assert torch.equal(one.states, two.states)
    assert one.states.abs().max() > 0
    assert not torch.equal(one.memories[0].source.value, two.memories[0].source.value)
    assert backbone.variant_slots() == ()


def test_the_readout_is_context_and_state_side_by_side(built, near):
    backbone, _, batch = built("ssnt", backbone=SMALL, task=COPY)
    trace = backbone(batch, Mode())
    value = trace.memories[0].source.value[:, 0]
    found = backbone.emit(trace.states[:, :, None], value[:, None], trace.embedded[:, :, None])
    weight, bias = backbone.project.weight, backbone.project.bias
    expected = weight @ torch.cat((value[1, 2], trace.states[1, 3])) + bias
    near(found[1, 3, 2], expected)


def test_online_reading_ignores_tokens_that_were_not_read_yet(built):
    """A forward encoder: a word emitted at a place cannot depend on what follows it."""
    checked = 0
    for seed in range(6):
        backbone, _, batch = built(
            "ssnt[encoder=uni_rnn]", backbone=SMALL, task=COPY, seed=seed, rows=8
        )
        with torch.no_grad():
            backbone.output.decide.weight.mul_(8)
        said, places = forced(backbone, batch)
        for cut in range(1, 4):
            tokens = batch.sources[0].tokens.clone()
            tokens[:, cut + 1 : 4] = 4 + (tokens[:, cut + 1 : 4] - 3) % 6
            changed = replace(batch, sources=(Text(tokens, batch.sources[0].mask),))
            again, moved = forced(backbone, changed)
            before = (places <= cut) & (batch.sources[0].tokens[:, :5].ne(0).sum(1) > 4)[:, None]
            assert torch.equal(again[before], said[before])
            assert torch.equal(moved[before], places[before])
            checked += int(before.sum()) * bool((again != said).any())
    assert checked > 20


def forced(backbone, batch):
    """Log probabilities of greedy reading under teacher forcing, and the places."""
    trace = backbone(batch, Mode())
    carried, places = backbone.output.begin(batch, trace.memories), []
    for t in range(trace.states.shape[1]):
        cut = slice(t, t + 1)
        one = trace._replace(states=trace.states[:, cut], embedded=trace.embedded[:, cut])
        _, carried = backbone.output.step(one, backbone.emit, batch, batch.inputs[:, cut], carried)
        places.append(carried["place"])
    return backbone.output.log_probs(trace, backbone.emit, batch), torch.stack(places, 1)


def test_an_output_that_does_not_read_the_source_is_refused(built):
    with pytest.raises(Refused, match="target_only needs an output that reads the source itself"):
        built("additive", backbone="rnn_seq2seq[hidden=16,embedding=8,decoder=target_only]")


@pytest.mark.parametrize("decoder", ["none_state", "bahdanau", "luong[input_feeding=true]"])
def test_ssnt_needs_states_that_ignore_the_context_and_a_source_that_is_kept(decoder, built):
    name = f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]"
    why = "one state for each source token" if decoder == "none_state" else "do not depend"
    with pytest.raises(Refused, match=f"ssnt needs .*{why}"):
        built(f"additive[output=ssnt,decoder={decoder}]", backbone=name)


def test_ssnt_stands_in_an_open_loop_with_attention_too(built):
    backbone, _, batch = built("additive[output=ssnt]", backbone=SMALL, task=COPY)
    trace = backbone(batch, Mode())
    found = backbone.output.nll(trace, backbone.emit, batch)
    assert found.shape == (4,)
    assert (found > 0).all()
