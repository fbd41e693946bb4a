"""Options of the backbones do what they say, and impossible ones are refused."""

import pytest
import torch
from torch import nn

from bench.api import registry
from bench.api.errors import InvalidConfig, Refused, UnknownName
from bench.api.trace import Mode
from tasks.backbones import rounded_product
from tasks.backbones.precision import ROUNDED


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_pooling_asks_once_and_classifies_the_context_alone(built, near):
    backbone, _, batch = built(task="after_marker[length=6]", backbone="pooling[embedding=8]")
    trace = backbone(batch, Mode())
    states = backbone.embedding(batch.sources[0].tokens)
    near(trace.context, trace.weights @ states)
    near(backbone.emit(states, trace.context, states), backbone.project(trace.context))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(0))
    moved = backbone.slot.prepare(states[:, order])
    query = trace.states
    context, _ = backbone.slot.attend(query, moved, backbone.slot.start(moved, query))
    near(context, trace.context)


def test_pooling_refuses_tasks_that_ask_for_several_words(built):
    backbone, _, batch = built(task="transduction", backbone="pooling[embedding=8]")
    with pytest.raises(Refused, match="one answer per sequence"):
        backbone(batch, Mode())


@pytest.mark.parametrize(
    ("backbone", "task"),
    [
        ("rnn_seq2seq[hidden=16,embedding=8,dropout=0.5]", "transduction"),
        ("transformer_seq2seq[width=16,heads=2,dropout=0.5]", "transduction"),
        ("transformer_decoder[width=16,heads=2,dropout=0.5]", "offset"),
    ],
)
def test_dropout_acts_in_training_alone(backbone, task, built):
    network, _, batch = built(task=task, backbone=backbone)

    def said() -> torch.Tensor:
        trace = network(batch, Mode())
        return network.emit(trace.states, trace.context, trace.embedded)

    with torch.random.fork_rng():
        network.eval()
        assert torch.equal(said(), said())
        network.train()
        assert not torch.equal(said(), said())


@pytest.mark.parametrize(
    ("task", "backbone", "option", "maps"),
    [
        ("transduction", "rnn_seq2seq[hidden=16,embedding=8{}]", "projection", 1),
        ("transduction", "rnn_seq2seq[hidden=16,embedding=8{}]", "precision", 5),
        ("transduction", "rnn_seq2seq[hidden=16,embedding=8,decoder=bahdanau{}]", "precision", 7),
        (
            "transduction",
            "rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn[cell=lstm,layers=2],"
            "decoder=luong[cell=lstm,layers=2]{}]",
            "precision",
            5,
        ),
        ("transduction", "rnn_seq2seq[hidden=16,embedding=8,decoder=gated{}]", "precision", 7),
        ("transduction", "transformer_seq2seq[width=16,heads=2,layers=1{}]", "precision", 17),
        ("offset", "transformer_decoder[width=16,heads=2,layers=1{}]", "precision", 7),
        (
            "distant_pair[farthest=4,length=9,pairs=2,symbols=5]",
            "tagger[width=16,heads=2,layers=1{}]",
            "precision",
            7,
        ),
    ],
)
def test_products_in_bfloat16_are_near_those_in_float32(
    task, backbone, option, maps, built, monkeypatch
):
    monkeypatch.setattr(rounded_product, "SMALL", 0)
    exact, _, batch = built(task=task, backbone=backbone.format(""))
    rough, _, _ = built(task=task, backbone=backbone.format(f",{option}=bfloat16"))
    assert sum(isinstance(one, tuple(ROUNDED.values())) for one in rough.modules()) == maps
    rough.load_state_dict(exact.state_dict())
    found = []
    for network in (exact, rough):
        trace = network(batch, Mode())
        loss = network.output.nll(trace, network.emit, batch)
        assert loss.dtype == torch.float64
        loss.mean().backward()
        found.append(loss)
    assert 0 < (found[0] - found[1]).abs().max() < 0.05
    whole = torch.nn.utils.get_total_norm([one.grad for one in exact.parameters()])
    for one, two in zip(exact.parameters(), rough.parameters(), strict=True):
        assert one.grad is not None
        assert two.grad.dtype == torch.float64
        assert (one.grad - two.grad).norm() <= 0.05 * one.grad.norm() + 0.001 * whole


def test_a_block_without_feed_forward_has_none_of_its_parameters(built):
    kinds = {}
    for size in (0, 2):
        name = f"transformer_decoder[width=16,heads=2,layers=1,feed_forward={size}]"
        network, _, batch = built("scaled_dot", task="offset", backbone=name)
        kinds[size] = count(network)
        trace = network(batch, Mode())
        network.output.nll(trace, network.emit, batch).sum().backward()
        assert all(parameter.grad is not None for parameter in network.parameters())
    # two linear maps with biases, and the norm before them
    assert kinds[2] - kinds[0] == (16 * 32 + 32) + (32 * 16 + 16) + 2 * 16


def test_switches_of_a_block_change_what_it_computes(built):
    said = []
    switched = (",norm=post", ",norm=off", ",residual=false", ",short_convolution=3")
    for options in ("", *switched, ",feed_convolution=3"):
        name = f"transformer_decoder[width=16,heads=2,layers=1{options}]"
        network, _, batch = built("scaled_dot", task="offset", backbone=name)
        trace = network(batch, Mode())
        assert trace.states.isfinite().all()
        said.append(trace.states)
    for index, one in enumerate(said):
        for two in said[index + 1 :]:
            assert (one - two).abs().max() > 1e-3


@pytest.mark.parametrize(
    "selector",
    [
        "transformer_decoder[width=16,heads=3]",
        "transformer_decoder[heads=0]",
        "transformer_decoder[layers=0]",
        "transformer_seq2seq[feed_forward=-1]",
        "rnn_seq2seq[hidden=15]",
        "rnn_seq2seq[decoder=sideways]",
        "pooling[width=3]",
    ],
)
def test_impossible_options_are_refused(selector, built):
    task = "offset" if "decoder" in selector else "transduction"
    with pytest.raises((InvalidConfig, UnknownName), match=r"heads|layers|hidden|sideways|width"):
        built("scaled_dot", task=task, backbone=selector)


def test_the_variant_fills_the_slot_it_was_given_and_no_other(built):
    for slot in ("cross", "causal", "self"):
        network, _, _ = built(
            "additive", backbone="transformer_seq2seq[width=16,heads=2,layers=2]", slot=slot
        )
        scores = [type(m).__name__ for m in network.modules() if type(m).__name__.endswith("Score")]
        assert scores.count("AdditiveScore") == 2
        assert scores.count("ScaledDotScore") == 4
        assert len(network.variant_slots()) == 2
        for held in network.variant_slots():
            assert held.heads.dims.regime == slot


def test_every_registered_backbone_is_tested_here_or_beside():
    assert set(registry.registrations("backbone")) == {
        "hierarchical",
        "image_classifier",
        "kernel_regression",
        "memn2n",
        "neural_programmer",
        "pair",
        "pooling",
        "pooling_perceptron",
        "rnn_decoder",
        "rnn_seq2seq",
        "snail",
        "tagger",
        "transformer_decoder",
        "transformer_seq2seq",
    }
