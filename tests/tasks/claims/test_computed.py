"""Computed claims: numbers that can be checked by hand, and mistakes that they must show."""

import pytest
import torch

from bench.api import registry
from bench.api.claim import CLAIMS
from bench.cli.registered import load_registry
from tasks.claims import computed_kernels, computed_masks, computed_mean_field, computed_scores
from tasks.claims.places import drawn, slot_of, weights_of

load_registry(())


def values(found):
    return {(one.metric, one.x): one.value for one in found}


def outside(key):
    """Metrics of a claim of which a number lies outside its bounds."""
    exact = registry.find(CLAIMS, key).target.exact
    numbers = exact.compute()
    found = set()
    for bound in exact.bounds:
        held = [
            bound.low <= one.value <= bound.high for one in numbers if one.metric == bound.metric
        ]
        assert held, f"{key} computes no {bound.metric}"
        found |= set() if all(held) else {bound.metric}
    return found


def only(selector):
    """Attention of one selector, whatever is asked for: what a wrong name would compute."""
    return lambda _, **place: slot_of(selector, **place)


@pytest.fixture
def no_clock(monkeypatch):
    """All that is timed takes a second, because no test asserts times."""
    monkeypatch.setattr(computed_scores, "_seconds", lambda *_: 1.0)


def test_a_score_without_parameters_needs_equal_widths():
    found = {one.metric: one.value for one in computed_scores.parameters_and_widths()}
    assert found == {
        "dot_parameters_count": 0,
        "dot_accepts_unequal_count": 0,
        "additive_accepts_unequal_count": 1,
        "general_accepts_unequal_count": 1,
    }


def test_the_variance_of_products_is_their_width(monkeypatch):
    monkeypatch.setattr(computed_scores, "WIDTHS", (4, 16))
    found = values(computed_scores.variance_of_products())
    assert found["variance_over_width_ratio", 16] == pytest.approx(1, abs=0.05)
    assert found["scaled_variance_ratio", 16] == pytest.approx(1, abs=0.05)


def test_the_gradient_of_softmax_is_that_of_autograd(monkeypatch):
    monkeypatch.setattr(computed_scores, "GRADIENT_WIDTHS", (8, 32))
    slot = slot_of("dot", width=32)
    query, keys = drawn(64, 1, 32, seed=1), drawn(64, 32, 32, seed=2)
    energy = (query @ keys.transpose(1, 2))[:, 0]
    norms = [
        torch.autograd.functional.jacobian(lambda e: e.softmax(-1), one).norm() for one in energy
    ]
    assert weights_of(slot, query, keys)[:, 0, 0].allclose(energy.softmax(-1))
    assert computed_scores._jacobian("dot", 32) == pytest.approx(float(torch.stack(norms).mean()))


def test_a_million_leaks_where_it_is_said_to():
    found = {one.metric: one.value for one in computed_masks.hidden_by_a_million()}
    assert (found["hidden_weight"], found["empty_row_weight_minus_infinity"]) == (0, 0)
    assert (found["empty_row_weight"], found["hidden_weight_beside_low_energies"]) == (1, 1)


def test_the_future_is_seen_where_a_variant_leaks(monkeypatch):
    plain = slot_of("scaled_dot", regime="self", head="multi[heads=2]")
    monkeypatch.setattr(computed_masks, "slot_of", lambda *_, **__: plain)
    found = [one for one in computed_masks.weight_of_the_future() if one.metric == "future_change"]
    assert min(one.value for one in found) > 1e-3


def test_a_narrow_kernel_copies_its_points():
    found = values(computed_kernels.band_and_error())
    assert found["band_width_keys", 10.0] < found["band_width_keys", -2.0]
    assert found["train_error_share_left", None] < 0.1


def test_relative_positions_have_the_parameters_of_the_paper():
    found = {one.metric: one.value for one in computed_kernels.window_of_relative_positions()}
    assert found["parameters_over_formula_ratio"] == 1


@pytest.mark.parametrize("key", ["C10", "C20", "C37"])
def test_computed_numbers_lie_within_the_bounds_of_their_claim(key):
    assert not outside(key)


@pytest.mark.usefixtures("no_clock")
def test_the_additive_score_keeps_more_for_backward():
    assert outside("C13") == {"time_ratio"}


@pytest.mark.usefixtures("no_clock")
def test_equal_scores_keep_as_much_for_backward(monkeypatch):
    monkeypatch.setattr(computed_scores, "slot_of", only("scaled_dot"))
    found = values(computed_scores.cost_of_scores())
    assert [found["kept_bytes_ratio", x] for x in (64, 128)] == [1, 1]
    assert outside("C13") == {"kept_bytes_ratio", "time_ratio"}


@pytest.mark.parametrize(
    ("name", "red"),
    [("dot", "scaled_dot_gradient_ratio"), ("scaled_dot", "dot_gradient_ratio")],
)
def test_gradients_of_another_score_lie_outside_the_bounds(monkeypatch, name, red):
    monkeypatch.setattr(computed_scores, "slot_of", only(name))
    assert outside("C10") == {red}


def test_wide_values_are_no_mean_field(monkeypatch):
    monkeypatch.setattr(computed_mean_field, "SPREADS", (2.0, 4.0))
    assert outside("C20") == {"gap_growth_exponent"}


@pytest.mark.parametrize(
    ("name", "red"),
    [
        ("sinusoid", {"order_change"}),
        ("scaled_dot[position=none]", {"sinusoid_order_change"}),
    ],
)
def test_positions_alone_tell_the_order_of_a_source(monkeypatch, name, red):
    monkeypatch.setattr(computed_masks, "slot_of", only(name))
    assert outside("C37") == red
