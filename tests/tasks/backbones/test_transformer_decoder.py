"""Stacks of different layers, and text that is continued with what the layers remember."""

from dataclasses import replace

import pytest
import torch

from bench.api.batch import Batch
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.trace import Mode

NAME = "transformer_decoder[width=16,heads=2,layers={}]"
VOCAB = 9


def prompt(rows=3, length=4):
    rng = torch.Generator().manual_seed(3)
    words = torch.randint(4, VOCAB, (rows, length), generator=rng)
    return Batch(sources=(), inputs=words, targets=words, mask=torch.ones_like(words).bool())


@pytest.mark.parametrize(
    "variant",
    [
        "scaled_dot",
        "sinusoid",
        "shaw_rpr",
        "linear_attention",
        "scaled_dot[output=pointer_sentinel[window=3]]",
        "scaled_dot[output=neural_cache[weight=0.95,theta=0.1]]",
    ],
)
@pytest.mark.parametrize("stack", ["own", "own+linear_attention"])
def test_words_said_one_by_one_are_the_likeliest_of_the_whole_text_so_far(variant, stack, placed):
    network = placed(NAME.format(f"3,short_convolution=3,stack={stack}"), variant, (), VOCAB)
    batch, asked = prompt(), Mode(want_weights=False)
    said = network.generate(batch, 7, asked)
    assert said.steps == 7 or all(len(row) < 7 for row in said.tokens)
    for row, words in enumerate(said.tokens):
        text = batch.inputs[row : row + 1]
        for word in words:
            given = replace(prompt(1), inputs=text)
            found = network.output.log_probs(network(given, asked), network.emit, given)
            assert int(found[0, -1].argmax()) == word
            text = torch.cat((text, torch.tensor([[word]])), 1)


def test_words_are_drawn_from_the_noise_at_a_temperature(placed):
    network = placed(NAME.format("1,temperature=1.5"), "scaled_dot", (), VOCAB)
    one, two, three = (
        network.generate(prompt(), 9, Mode(noise=Noise(seed))).tokens for seed in (1, 1, 2)
    )
    assert one == two
    assert one != three
    with pytest.raises(Refused, match="no noise to draw by"):
        network.generate(prompt(), 2, Mode())


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 3 / 4), (0.5, 9 / 10)])
def test_a_low_temperature_draws_what_is_likely_more_often(placed, temperature, share):
    network = placed(NAME.format(f"1,temperature={temperature}"), "scaled_dot", (), VOCAB)
    said = torch.full((4000, VOCAB), -1e4)
    said[:, 4], said[:, 5] = 0.0, torch.tensor(3.0).log()
    found = network._choose(torch.log_softmax(said, -1), 0, Mode(noise=Noise(0))).flatten()
    assert set(found.tolist()) == {4, 5}
    assert (found == 5).double().mean().item() == pytest.approx(share, abs=0.03)


def test_layers_of_a_stack_are_repeated_from_the_lowest_one_up(placed):
    network = placed(NAME.format("5,stack=own+linear_attention"), "additive", (), VOCAB)
    names = [type(block.own.variant).__name__ for block in network.blocks]
    assert names == ["Chain", "LinearAttention", "Chain", "LinearAttention", "Chain"]
    assert network.variant_slots() == tuple(network.blocks[n].own for n in (0, 2, 4))
    assert [block.own.variant.dims.layer for block in network.blocks] == [0, 1, 2, 3, 4]


def test_weights_are_those_of_the_last_layer_that_holds_the_variant(placed):
    network = placed(NAME.format("2,stack=own+linear_attention"), "additive", (), VOCAB)
    trace = network(prompt(), Mode())
    assert len(trace.attended) == 1
    assert trace.weights.shape == (3, 4, 4)


@pytest.mark.parametrize("named", ["learned", "sinusoid", "mha[heads=2,position=sinusoid]"])
def test_a_named_layer_whose_positions_would_not_be_added_is_refused(named, placed):
    for stack in (f"own+{named}", f"{named}+own"):
        with pytest.raises(Refused, match=rf"{named.split('[')[0]}.* adds positions to its input"):
            placed(NAME.format(f"2,stack={stack}"), "scaled_dot", (), VOCAB)
    with pytest.raises(Refused, match="adds positions to its input"):
        placed(NAME.format(f"2,positions_each_layer=true,stack={named}+own"), "mha", (), VOCAB)


def test_positions_of_a_named_layer_are_added_where_every_layer_adds_some(placed):
    name = NAME.format("2,positions_each_layer=true,stack=own+learned")
    network = placed(name, "scaled_dot", (), VOCAB)
    network.emit(*network(prompt(), Mode())[:3]).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_a_stack_without_the_variant_is_an_error(placed):
    with pytest.raises(InvalidConfig, match="no layer holds the variant"):
        placed(NAME.format("3,stack=linear_attention"), "additive", (), VOCAB)
