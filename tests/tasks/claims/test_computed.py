"""Computed claims: numbers that can be checked by hand, and mistakes that they must show."""

import pytest
import torch

from bench.cli.registered import load_registry
from tasks.claims import computed_kernels, computed_masks, computed_scores
from tasks.claims.places import drawn, slot_of, weights_of

load_registry(())


def values(found):
    return {(one.metric, one.x): one.value for one in found}


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
