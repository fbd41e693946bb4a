import math

import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.conformance import certify


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("mask", ["strictly_past", "full", "sliding_window[window=2]"])
def test_vectorized_code_equals_the_loops(equals_oracle, mask, padded):
    equals_oracle(f"stick_breaking[mask={mask}]", "causal", padded=padded)


def test_weights_are_shares_of_what_later_keys_leave(row):
    shares = [1 / (1 + math.exp(-e)) for e in (0.3, -1.0, 2.0)]
    first, second, third = shares
    wanted = [first * (1 - second) * (1 - third), second * (1 - third), third]
    assert row("stick_breaking", [0.3, -1.0, 2.0]) == pytest.approx(wanted)


def test_a_row_sums_to_one_less_the_rest_of_the_stick(row):
    energies = [0.3, -1.0, 2.0, 0.0]
    rest = math.prod(1 - 1 / (1 + math.exp(-e)) for e in energies)
    assert sum(row("stick_breaking", energies)) == pytest.approx(1 - rest)


def test_a_key_that_takes_all_leaves_nothing_to_keys_before_it(row):
    weights = row("stick_breaking", [5.0, 3.0, 900.0, 0.0])
    assert weights == pytest.approx([0, 0, 0.5, 0.5])


def test_energies_far_below_zero_read_nothing(row):
    assert sum(row("stick_breaking", [-800.0, -900.0])) == 0


def test_hidden_keys_take_nothing(row):
    found = row("stick_breaking", [0.3, 7.0, 2.0], [True, False, True])
    wanted = row("stick_breaking", [0.3, 2.0])
    assert found == pytest.approx([wanted[0], 0, wanted[1]])


def test_small_shares_far_back_are_not_lost_to_rounding(row):
    """A difference of two sums would keep no digit of the nearest keys' weights."""
    weights = row("stick_breaking", [20.0] * 60 + [-20.0] * 3, dtype=torch.float32)
    assert weights[-1] == pytest.approx(math.exp(-20), rel=1e-5)
    assert weights[-4] == pytest.approx(1, rel=1e-5)


def test_equal_energies_weigh_recent_keys_more(beneath, answer, draw):
    drawn = draw(1, 1, 6, 6, lengths=())
    variant = beneath("stick_breaking", heads=1, regime="causal")
    found = answer(variant, 0 * drawn.query, drawn.source).weights[0, 0, 5]
    assert found.tolist() == pytest.approx([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 0])


def test_the_current_key_is_left_out_unless_the_mask_is_full(beneath, answer, draw):
    drawn = draw(queries=5, keys=5, lengths=())
    for selector, own in (("stick_breaking", False), ("stick_breaking[mask=full]", True)):
        weights = answer(beneath(selector, regime="causal"), drawn.query, drawn.source).weights
        assert bool(weights.diagonal(dim1=2, dim2=3).any()) == own


def test_the_certificate_asks_for_the_keys_before_a_query_alone():
    found = certify("stick_breaking", checks=["causality", "weight_law"])
    assert found.passed == ("causality", "weight_law")


@pytest.mark.parametrize("regime", ["cross", "self", "pool"])
@pytest.mark.parametrize("mask", ["strictly_past", "full"])
def test_it_needs_an_order_of_time(regime, mask):
    with pytest.raises(Refused):
        variants.build(f"stick_breaking[mask={mask}]", dim=8, heads=2, regime=regime)
