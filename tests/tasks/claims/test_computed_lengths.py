"""Costs of a token and weights of a match, by formula."""

import pytest

from bench.cli.registered import load_registry
from tasks.claims import computed_lengths
from tasks.claims.computed_lengths import LENGTHS, ROWS, WIDTH, _exponent, _token
from tasks.claims.places import drawn

load_registry(())


def test_a_token_of_softmax_attention_costs_two_products_with_every_key():
    operations, kept = _token("scaled_dot", 10)
    assert operations == 2 * 2 * WIDTH * 11
    # keys are values here, so that a token keeps one vector of float64
    assert kept == WIDTH * 10 * 8


def test_a_window_keeps_and_reads_no_more_than_its_keys():
    short, long = (_token("sliding_window[window=4]", length) for length in (10, 20))
    assert short == long
    assert short[0] == 2 * 2 * WIDTH * 4


def test_an_exponent_is_the_power_of_the_length():
    for power in (0.0, 1.0, 2.0):
        assert _exponent(tuple(3 * length**power for length in LENGTHS)) == pytest.approx(power)


@pytest.mark.parametrize(("selector", "scale"), [("scaled_dot", 1.0), ("ssmax", None)])
def test_the_weight_of_a_match_is_its_share_of_the_exponentials(selector, scale):
    source = drawn(ROWS, 32, WIDTH, seed=1)
    energy = (source[:, :1] * source).sum(-1) / WIDTH**0.5
    grown = 0.43 * 3.4657359028 if scale is None else scale
    expected = (grown * energy).softmax(-1)[:, 0].mean()
    assert computed_lengths._weight_of_match(selector, 32) == pytest.approx(float(expected))


def test_every_bound_of_the_claim_is_computed(monkeypatch):
    monkeypatch.setattr(computed_lengths, "LENGTHS", (8, 128))
    monkeypatch.setattr(computed_lengths, "KEYS", (4, 8))
    found = computed_lengths.cost_and_weight_by_length()
    ends = {one.metric for one in found if not one.axis}
    names = ("attention", "window", "linear", "delta")
    assert ends == {
        *(f"{name}_{kind}_exponent" for name in names for kind in ("operations", "bytes")),
        "fixed_scale_weight_left_share",
        "log_scale_weight_left_share",
    }
