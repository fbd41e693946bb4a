import pytest
import torch

import variants
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from bench.api.source import Source
from variants.scores.decomposable import DecomposableConfig

ONE = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)[None, None]
TWO = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], dtype=torch.float64)[None, None]


def make_identity(score):
    """Two layers that let what is not negative through unchanged."""
    with torch.no_grad():
        for weight in (score.first, score.second):
            weight.copy_(torch.eye(2).expand_as(weight))
        for bias in (score.first_bias, score.second_bias):
            bias.zero_()


@pytest.fixture
def identity(beneath):
    variant = beneath("decomposable[width=2]", heads=1, widths=(2, 2, 2))
    make_identity(variant.score)
    return variant


def test_golden_contexts_of_both_sentences(identity, answer):
    there = answer(identity, ONE, Source(TWO, TWO))
    expected = torch.tensor([[0.844638, 0.733044], [0.334759, 1.575210]], dtype=torch.float64)
    torch.testing.assert_close(there.output[0, 0], expected, rtol=0, atol=5e-7)
    back = answer(identity, TWO, Source(ONE, ONE))
    expected = torch.tensor(
        [[0.731059, 0.268941], [0.5, 0.5], [0.119203, 0.880797]], dtype=torch.float64
    )
    torch.testing.assert_close(back.output[0, 0], expected, rtol=0, atol=5e-7)


def test_energies_are_those_of_two_layers_of_torch(component, draw, ask):
    drawn = draw(lengths=())
    score = component("score", "decomposable[width=6]")
    call = ask(drawn.query, drawn.source, parts={"score": score.prepare(drawn.source)})
    found = score.energy(call, None)
    assert (found >= 0).all()
    assert (found > 0).any()
    for head in range(2):
        layers = []
        for weight, bias in (
            (score.first, score.first_bias),
            (score.second, score.second_bias),
        ):
            layer = torch.nn.Linear(weight.shape[1], 6).double()
            layer.weight.data, layer.bias.data = weight[head].T.data, bias[head, 0].data
            layers += [layer, torch.nn.ReLU()]
        both = torch.nn.Sequential(*layers)
        expected = both(drawn.query[:, head]) @ both(drawn.source.key[:, head]).mT
        torch.testing.assert_close(found[:, head], expected, rtol=0, atol=1e-10)


def test_queries_and_keys_go_through_the_same_perceptron(component, draw, ask):
    drawn = draw(lengths=())
    score = component("score", "decomposable[width=6]")

    def energy(query, key):
        source = Source(key, key)
        return score.energy(ask(query, source, parts={"score": score.prepare(source)}), None)

    one = energy(drawn.query, drawn.source.key)
    two = energy(drawn.source.key, drawn.query)
    torch.testing.assert_close(one, two.mT, rtol=0, atol=1e-12)


def test_the_perceptron_runs_once_a_token_and_not_once_a_pair(component, draw, ask):
    from torch.utils.flop_counter import FlopCounterMode

    drawn = draw(1, 2, 30, 40, lengths=())
    score = component("score", "decomposable[width=6]")
    with FlopCounterMode(display=False) as counter:
        parts = {"score": score.prepare(drawn.source)}
        score.energy(ask(drawn.query, drawn.source, parts=parts), None)
    perceptron = 2 * 2 * (30 + 40) * (5 * 6 + 6 * 6)
    assert counter.get_total_flops() == perceptron + 2 * 2 * 30 * 40 * 6


def test_the_fused_kernel_gives_the_same(beneath, answer, draw):
    drawn = draw()
    eager = answer(beneath("decomposable", impl="eager"), drawn.query, drawn.source).output
    variant = beneath("decomposable", impl="sdpa")
    memory = variant.prepare(drawn.source)
    fused = variant.attend(drawn.query, memory, variant.start(memory, None), want_weights=False)
    torch.testing.assert_close(fused.output, eager, rtol=0, atol=1e-10)


def test_dead_units_leave_uniform_weights_and_finite_gradients(beneath, answer, draw):
    drawn = draw(2, 2, 3, 4, lengths=[4, 0])
    variant = beneath("decomposable[width=6]")
    with torch.no_grad():
        variant.score.second_bias.fill_(-100.0)
    found = answer(variant, drawn.query.requires_grad_(), drawn.source)
    found.output.sum().backward()
    assert drawn.query.grad.isfinite().all()
    assert torch.equal(found.weights[0], torch.full_like(found.weights[0], 0.25))
    assert not found.weights[1].any()


def test_wrong_widths_are_refused():
    asked = parse("decomposable[width=0]")
    with pytest.raises(InvalidConfig, match="width must be at least 1"):
        build_config(DecomposableConfig, asked.options, asked.name)
    with pytest.raises(Refused, match="equal width"):
        variants.build("decomposable", dim=8, source_dim=6, regime="cross")
