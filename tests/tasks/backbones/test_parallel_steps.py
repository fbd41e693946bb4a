"""Teacher forcing all at once equals one step after the other, for every decoder."""

import pytest
import torch

from bench.api import registry
from bench.api.config import build_config
from bench.api.decoder import Decoder
from bench.api.noise import Noise
from bench.api.selector import parse
from bench.api.trace import Mode

DECODERS = (
    "luong",
    "luong[input_feeding=true]",
    "bahdanau",
    "bahdanau[output_layer_state=curr]",
    "none_state",
    "none_input",
    "luong[cell=lstm]",
    "luong[cell=lstm,layers=3,input_feeding=true]",
    "luong[layers=2]",
    "none_state[cell=lstm,layers=2]",
    "none_input[cell=lstm]",
    "lstmn",
    "lstmn[fusion=deep]",
    "las",
    "las[cell=gru,layers=1]",
    "gated",
    "gated[gate=false]",
    "target_only",
    "gnmt",
    "gnmt[cell=gru,layers=2]",
    "gnmt[layers=4,residual=false]",
)
NEEDED = {"target_only": "ssnt"}
"""Variants that a decoder asks for; any other takes what there is."""
VARIANTS = ("additive", "tu_coverage", "luong_local_p", "raffel_monotonic", "hard_reinforce")


def test_every_registered_decoder_is_looked_at():
    assert {name.partition("[")[0] for name in DECODERS} == set(registry.registrations("decoder"))


def parallel_and_loop(found, mode):
    backbone, _, batch = found
    decoder = backbone.decoder
    encoded = backbone.encode(batch, Mode())
    memories = decoder.prepare(encoded, batch) if decoder.attends else ()
    x = backbone.target_embedding(batch.inputs)
    path = decoder.begin(torch.cat([source.summary for source in encoded], -1), memories)
    return decoder.run(x, memories, path, mode), Decoder.run(decoder, x, memories, path, mode)


def assert_equal_steps(run, loop, near):
    near(run.states, loop.states)
    near(run.context, loop.context)
    near(run.path.hidden, loop.path.hidden)
    assert run.states.abs().max() > 0.1, "a comparison of zeros shows nothing"
    assert run.states[:, 0].sub(run.states[:, 1]).abs().max() > 1e-3
    for one, two in zip(run.path.slots, loop.path.slots, strict=True):
        assert one.offset == two.offset == run.states.shape[1]
    for one, two in zip(run.attended, loop.attended, strict=True):
        near(one.weights, two.weights)
        near(one.output, two.output)
        assert set(one.terms) == set(two.terms)
        for name in one.terms:
            near(one.terms[name], two.terms[name])


@pytest.mark.parametrize("decoder", DECODERS)
def test_run_equals_a_loop_of_steps(decoder, built, near):
    variant = NEEDED.get(decoder, "additive")
    found = built(variant, backbone=f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]")
    assert_equal_steps(*parallel_and_loop(found, Mode()), near)


@pytest.mark.parametrize("variant", VARIANTS)
def test_run_equals_a_loop_of_steps_whatever_the_mechanism_remembers(variant, built, near):
    found = built(
        variant, task="transduction[rule=copy]", backbone="rnn_seq2seq[hidden=16,embedding=8]"
    )
    mode = Mode(read="train", noise=Noise(3), progress=0.4)
    assert_equal_steps(*parallel_and_loop(found, mode), near)


def test_attention_that_remembers_steps_through_input_feeding_too(built, near):
    found = built(
        "tu_coverage",
        backbone="rnn_seq2seq[hidden=16,embedding=8,decoder=luong[input_feeding=true]]",
    )
    assert_equal_steps(*parallel_and_loop(found, Mode()), near)


def test_open_loop_is_given_exactly_where_states_ignore_the_context(built):
    """States move with the slot's parameters unless the decoder calls itself open-loop."""
    for decoder in DECODERS:
        name = f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]"
        backbone, _, batch = built(NEEDED.get(decoder, "additive"), backbone=name)
        before = backbone(batch, Mode()).states
        with torch.no_grad():
            for slot in backbone.decoder.slots:
                for parameter in slot.parameters():
                    parameter.mul_(-2)
        moved = (backbone(batch, Mode()).states - before).abs().max() > 1e-9
        chosen = parse(decoder)
        target = registry.find("decoder", chosen.name)
        config = build_config(target.config, chosen.options, chosen.name)
        assert bool(moved) == ("open_loop" not in target.target.given(config)), decoder
