import doctest

import pytest
import torch

import variants
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from bench.api.source import Source
from variants.mechanisms import act
from variants.mechanisms.act import ActConfig, halting

SQUARE = (5, 5, 5)
NEVER, AT_ONCE = -50.0, 50.0


def shares_of(*halts: float, enough: float = 0.99):
    shares, ponder = halting(torch.tensor(halts, dtype=torch.float64), enough)
    return shares.tolist(), ponder.item()


@pytest.mark.parametrize(
    ("halts", "shares", "ponder"),
    [
        ((0.3, 0.3, 0.6, 0.9), (0.3, 0.3, 0.4, 0.0), 3.4),
        ((0.995, 0.5), (1.0, 0.0), 2.0),  # within epsilon of one after one hop
        ((0.1, 0.1, 0.1), (0.1, 0.1, 0.8), 3.8),  # there are no more hops
        ((0.2,), (1.0,), 2.0),
        ((0.5, 0.495, 0.5), (0.5, 0.5, 0.0), 2.5),
    ],
)
def test_halting_by_hand(halts, shares, ponder):
    found, cost = shares_of(*halts)
    assert found == pytest.approx(shares)
    assert cost == pytest.approx(ponder)


def test_the_example_of_the_docstring_holds():
    assert doctest.testmod(act).attempted > doctest.testmod(act).failed == 0


def test_shares_sum_to_one_whatever_the_unit_says():
    halts = torch.rand(7, 500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for scale in (1.0, 0.1, 0.01):
        shares, ponder = halting(scale * halts, 0.99)
        torch.testing.assert_close(shares.sum(0), torch.ones(500).double())
        assert (shares >= 0).all()
        hops = (shares > 0).sum(0)
        torch.testing.assert_close(ponder, hops + shares.gather(0, hops[None] - 1)[0])


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("options", ["hops=1", "hops=4", "hops=3,epsilon=0.3"])
def test_vectorized_code_equals_the_loops(options, regime, equals_oracle):
    equals_oracle(f"act[{options}]", regime)


def test_queries_of_one_batch_stop_after_different_numbers_of_hops(beneath, answer, draw):
    drawn = draw(3, 2, 6, 6, widths=SQUARE)
    variant = beneath("act[hops=6]", widths=SQUARE)
    ponder = answer(variant, drawn.query, drawn.source).terms["ponder"]
    assert ponder.shape == (3, 6)
    assert (ponder.round() > 2).any()
    assert len(ponder.round().unique()) > 2


@pytest.mark.parametrize(("bias", "hops"), [(AT_ONCE, 1), (NEVER, 3)])
def test_always_or_never_stopping_is_a_fixed_number_of_hops(bias, hops, beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    adaptive = beneath("act[hops=3]", widths=SQUARE)
    with torch.no_grad():
        adaptive.halt.zero_()
        adaptive.halt_bias.fill_(bias)
    fixed = beneath(f"memn2n[hops={hops},tying=layer_wise]", widths=SQUARE)
    with torch.no_grad():
        fixed.carry.copy_(adaptive.carry)
    one, two = (answer(v, drawn.query, drawn.source) for v in (adaptive, fixed))
    torch.testing.assert_close(one.output, two.output, rtol=0, atol=1e-10)
    torch.testing.assert_close(one.weights, two.weights, rtol=0, atol=1e-10)
    torch.testing.assert_close(one.terms["ponder"], torch.full((3, 4), hops + 1.0).double())


def test_weights_are_the_mean_of_the_hops_and_sum_to_one(beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    weights = answer(beneath("act", widths=SQUARE), drawn.query, drawn.source).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 4).double())


def test_paying_for_hops_makes_stopping_likelier(beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    variant = beneath("act", widths=SQUARE, seed=None)
    with torch.no_grad():
        variant.halt_bias.fill_(-1.0)
    answer(variant, drawn.query, drawn.source).terms["ponder"].sum().backward()
    assert (variant.halt_bias.grad < 0).all(), "a larger bias must lower the cost"


def test_learning_begins_with_few_hops(beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    found = answer(beneath("act", widths=SQUARE, seed=None), drawn.query, drawn.source)
    # sigmoid(1) = .73 at each hop, so that the second one stops
    expected = torch.full((3, 4), 2 + 1 - 0.7310585786)
    torch.testing.assert_close(found.terms["ponder"].float(), expected)


@pytest.mark.parametrize(
    ("options", "reason"), [("hops=0", "at least 1"), ("epsilon=1.0", "between 0 and 1")]
)
def test_options_without_a_meaning_are_refused(options, reason):
    asked = parse(f"act[{options}]")
    with pytest.raises(InvalidConfig, match=reason):
        build_config(ActConfig, asked.options, asked.name)


def test_places_without_a_meaning_are_refused(beneath):
    with pytest.raises(Refused, match="values must be as wide as queries"):
        beneath("act", widths=(5, 5, 4))
    with pytest.raises(Refused, match="impl=sdpa"):
        variants.build("act", dim=8, heads=2, impl="sdpa")


def test_an_edit_of_the_weights_is_what_the_values_are_mixed_by(beneath, draw):
    drawn = draw(widths=SQUARE, lengths=())
    variant = beneath("act", widths=SQUARE)
    memory = variant.prepare(drawn.source)

    def first_key(weights, call):
        return torch.zeros_like(weights).index_fill(3, torch.tensor([0]), 1.0)

    state = variant.start(memory, None)
    found = variant.attend(drawn.query, memory, state, edit=first_key)
    only = variant.prepare(Source(drawn.source.key[:, :, :1], drawn.source.value[:, :, :1]))
    alone = variant.attend(drawn.query, only, state).output
    torch.testing.assert_close(found.output, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.weights, first_key(found.weights, None), rtol=0, atol=1e-12)
