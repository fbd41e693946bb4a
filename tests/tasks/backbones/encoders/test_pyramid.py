"""The listener: half the length a layer, odd lengths too, and what lines up with its states."""

import pytest
import torch

from bench.api import registry
from bench.api.errors import Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.training.evaluate import attention_maps, evaluate

WIDTH, HIDDEN = 3, 6
BACKBONE = "rnn_seq2seq[hidden=16,embedding=8,encoder=pyramid[layers={}]]"


@pytest.fixture
def build(draw):
    def make(selector: str):
        made = registry.make("encoder", parse(selector), WIDTH, HIDDEN).double()
        draw(made, 0)
        return made

    return make


def sentence(rows: int, length: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(length)
    return torch.randn(rows, length, WIDTH, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 16, 17])
def test_the_length_is_divided_and_rounded_up(layers, length, build):
    encoder = build(f"pyramid[layers={layers}]")
    found = encoder(sentence(2, length), None)
    assert encoder.stride == 2**layers
    assert found.states.shape == (2, -(-length // 2**layers), HIDDEN)
    assert found.mask is None


@pytest.mark.parametrize("lengths", [(9, 5, 1), (8, 7, 2), (16, 3, 11)])
def test_a_state_is_real_where_one_of_its_tokens_is(lengths, build):
    encoder, width = build("pyramid[layers=2]"), max(lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    found = encoder(sentence(len(lengths), width), mask)
    assert found.mask.sum(1).tolist() == [-(-length // 4) for length in lengths]
    assert not found.states[~found.mask].any()
    for row in range(len(lengths)):
        for state in range(found.mask.shape[1]):
            covered = mask[row, 4 * state : 4 * state + 4].any()
            assert bool(found.mask[row, state]) == bool(covered)


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def lstm(layer, inputs, ending):
    """One direction of a layer, step by step."""
    w, u = getattr(layer, f"weight_ih_l0{ending}"), getattr(layer, f"weight_hh_l0{ending}")
    b = getattr(layer, f"bias_ih_l0{ending}") + getattr(layer, f"bias_hh_l0{ending}")
    size = u.shape[1]
    hidden = cell = torch.zeros(size, dtype=torch.float64)
    found = []
    for x in inputs:
        gates = w @ x + u @ hidden + b
        entering, forgetting = sigmoid(gates[:size]), sigmoid(gates[size : 2 * size])
        fresh, leaving = torch.tanh(gates[2 * size : 3 * size]), sigmoid(gates[3 * size :])
        cell = forgetting * cell + entering * fresh
        hidden = leaving * torch.tanh(cell)
        found.append(hidden)
    return found


@pytest.mark.parametrize("length", [4, 5, 7])
def test_it_equals_the_equations_written_out(length, build, near):
    encoder, x = build("pyramid[layers=2]"), sentence(1, length)
    inputs = list(x[0])
    for index, layer in enumerate(encoder.layers):
        if index:
            if len(inputs) % 2:
                inputs.append(torch.zeros_like(inputs[0]))
            inputs = [torch.cat(pair) for pair in zip(inputs[::2], inputs[1::2], strict=True)]
        there = lstm(layer, inputs, "")
        back = lstm(layer, inputs[::-1], "_reverse")[::-1]
        inputs = [torch.cat(pair) for pair in zip(there, back, strict=True)]
    found = encoder(x, None)
    near(found.states[0], torch.stack(inputs))
    near(found.summary[0], torch.cat((there[-1], back[0])))


@pytest.mark.parametrize("layers", [1, 2])
def test_gold_folds_as_the_states_do(layers, built, near):
    backbone, _, batch = built("additive", backbone=BACKBONE.format(layers), rows=6)
    arranged, stride = backbone.arrange(batch), 2**layers
    weights = backbone(batch, Mode()).weights
    assert arranged.gold.shape == weights.shape
    assert arranged.stride == stride
    assert arranged.extended is None
    for row in range(6):
        for t in range(batch.gold.shape[1]):
            for state in range(weights.shape[2]):
                inside = batch.gold[row, t, state * stride : (state + 1) * stride].sum()
                near(arranged.gold[row, t, state], inside)
    near(arranged.gold.sum(-1), batch.gold.sum(-1))
    assert backbone.arrange(arranged) is arranged


def test_supervision_compares_folded_gold_with_the_weights_of_states(built, near):
    backbone, _, batch = built("supervised_attention", backbone=BACKBONE.format(1), rows=5)
    loss = registry.make("loss", resolve("supervised_attention").axes["loss"][0])
    arranged = backbone.arrange(batch)
    trace = backbone(arranged, Mode())
    nll = backbone.output.nll(trace, backbone.emit, arranged)
    term, _ = loss(LossInputs(trace, nll, arranged, 1.0), loss.init())
    places = batch.gold.argmax(-1) // 2
    expected = [
        -trace.weights[row, t, places[row, t]].log()
        for row in range(5)
        for t in range(batch.mask.shape[1])
        if batch.mask[row, t]
    ]
    near(term, torch.stack(expected).mean())


def test_a_split_is_scored_and_drawn_with_one_column_a_state(built):
    backbone, task, _ = built("additive", backbone=BACKBONE.format(1))
    found = evaluate(task, backbone, "validation", torch.device("cpu"), lambda: 0.0)
    match = found.value("alignment_match")
    assert match is not None
    assert 0 <= match <= 1
    for drawn in attention_maps(task, found.answers, 2):
        columns = len(drawn["source"])
        assert all(len(line) == columns for line in drawn["weights"])
        assert all(len(line) == columns for line in drawn["gold"])
        assert all(abs(sum(line) - 1) < 1e-2 for line in drawn["weights"])
        assert any(" " in name for name in drawn["source"]) or columns == 1


def test_copying_is_refused_because_states_are_not_words(built):
    with pytest.raises(Refused, match="token ids of the source, which pyramid removes"):
        built("pointer_generator", backbone=BACKBONE.format(1))


def test_two_directions_are_refused_because_states_are_not_words(built):
    with pytest.raises(Refused, match=r"one state for each source token.* pyramid removes"):
        built("agreement_trace", backbone=BACKBONE.format(1))


def test_pooling_reads_a_pyramid_too(built, near):
    backbone, _, batch = built(
        task="after_marker[length=6]", backbone="pooling[embedding=8,encoder=pyramid[layers=1]]"
    )
    trace = backbone(batch, Mode())
    assert trace.weights.shape[2] == 3
    near(trace.weights.sum(-1), torch.ones_like(trace.weights[..., 0]))
