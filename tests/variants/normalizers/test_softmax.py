"""Softmax, its temperature, and the exact places where other ways to hide a key fail (C27)."""

import math

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.conformance import certify

FILL, ADD = "softmax[mask_mode=neg_1e6_fill]", "softmax[mask_mode=neg_1e6_add]"
MULTIPLY = "softmax[mask_mode=multiplicative_renorm]"
OTHERS = (FILL, ADD, MULTIPLY)
MASKS = ("softmax", *OTHERS)
LAST = [True, True, False]
NOTHING = [False, False, False]


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("options", ["temperature=0.3", "temperature=5"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"scaled_dot[normalizer=softmax[{options}]]", regime)


@pytest.mark.parametrize("mode", ["neg_1e6_fill", "neg_1e6_add", "multiplicative_renorm"])
def test_other_masks_equal_their_loops_while_rows_have_keys(equals_oracle, mode):
    equals_oracle(f"scaled_dot[normalizer=softmax[mask_mode={mode},temperature=2]]", "causal")


def test_golden_weights_with_and_without_the_last_key(row):
    assert row("softmax", [1, 0, 1]) == pytest.approx([0.422319, 0.155362, 0.422319], abs=1e-6)
    assert row("softmax", [1, 0, 1], LAST) == pytest.approx([0.731059, 0.268941, 0], abs=1e-6)


def test_a_constant_on_all_energies_of_a_row_changes_nothing(aligned, energies):
    energy = energies(2, 2, 3, 5).detach()
    moved = aligned("softmax", energy + 7)
    torch.testing.assert_close(moved, aligned("softmax", energy), rtol=0, atol=1e-12)


def test_the_temperature_divides_energies_and_its_ends_are_the_best_key_and_all_alike(aligned, row):
    energy = torch.randn(2, 2, 3, 5, generator=torch.Generator().manual_seed(1)).double()
    cold = aligned("softmax[temperature=0.25]", energy)
    assert torch.equal(cold, aligned("softmax", energy * 4))
    assert row("softmax[temperature=0.001]", [1, 0.5, 0.9]) == pytest.approx([1, 0, 0])
    assert row("softmax[temperature=1e9]", [1, 0.5, 0.9]) == pytest.approx([1 / 3] * 3)


def test_a_weight_grows_with_its_own_energy_and_shrinks_with_others(aligned, energies):
    energy = energies(1, 1, 1, 5)

    def weights(e):
        return aligned("softmax", e.view(1, 1, 1, 5)).flatten()

    found = torch.autograd.functional.jacobian(weights, energy.detach().flatten())
    a = weights(energy.detach())
    torch.testing.assert_close(found, torch.diag(a) - torch.outer(a, a), rtol=0, atol=1e-12)
    assert (found.diagonal() > 0).all()
    assert ((found < 0).sum(-1) == 4).all()
    assert found.sum(-1).abs().max() < 1e-12
    assert torch.linalg.matrix_rank(found) == 4


@pytest.mark.parametrize("selector", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_mask_hides_a_key_of_ordinary_energy_where_others_are_left(row, selector, dtype):
    found = row(selector, [1, 0, 1], LAST, dtype)
    assert found[2] == 0
    assert found[:2] == pytest.approx([0.731059, 0.268941], abs=max(1e-6, torch.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_only_minus_infinity_and_multiplying_leave_a_row_without_keys_empty(row, dtype):
    assert row("softmax", [1, 0, 1], NOTHING, dtype) == [0, 0, 0]
    assert row(MULTIPLY, [1, 0, 1], NOTHING, dtype) == [0, 0, 0]


def test_filling_reads_a_row_without_keys_evenly(row):
    assert row(FILL, [1, 0, 1], NOTHING) == pytest.approx([1 / 3] * 3)
    assert row(FILL, [1, 0, 1], NOTHING, torch.bfloat16) == pytest.approx([1 / 3] * 3, abs=1e-2)


def test_adding_reads_a_row_without_keys_as_if_nothing_were_hidden(row):
    found = row(ADD, [1, 0, 1], NOTHING)
    assert found == pytest.approx([0.4223, 0.1554, 0.4223], abs=1e-4)


def test_a_million_is_minus_infinity_in_float16_and_makes_nan_of_a_row_without_keys(row):
    for selector in (FILL, ADD):
        assert all(math.isnan(w) for w in row(selector, [1, 0, 1], NOTHING, torch.float16))


def test_adding_in_bfloat16_forgets_the_energies(row):
    both = torch.tensor([5.0, 1.0], dtype=torch.bfloat16) - 1e6
    assert both.tolist() == [-999424, -999424]
    assert row(ADD, [5, 1, 5], NOTHING, torch.bfloat16) == pytest.approx([1 / 3] * 3, abs=1e-2)


def test_real_energies_near_minus_a_million_share_with_a_filled_key(row):
    numbers = [-1e6, -1e6 - 1, 7.0]
    assert row("softmax", numbers, LAST) == pytest.approx([0.731059, 0.268941, 0], abs=1e-6)
    assert row(FILL, numbers, LAST)[2] == pytest.approx(0.422319, abs=1e-6)
    assert row(ADD, [-1e6, -1e6 - 1, 0], LAST)[2] == pytest.approx(0.422319, abs=1e-6)


def test_a_hidden_key_far_above_the_others_leaves_nothing_to_renormalize(row):
    numbers = [1, 0, 1000]
    assert row("softmax", numbers, LAST) == pytest.approx([0.731059, 0.268941, 0], abs=1e-6)
    assert row(MULTIPLY, numbers, LAST) == [0, 0, 0]
    assert row(MULTIPLY, [1, 0, 100], LAST) == pytest.approx([0.731059, 0.268941, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("mode", "check", "sentence"),
    [
        ("neg_1e6_fill", "dead_rows", "instead of zero"),
        ("neg_1e6_add", "dead_rows", "instead of zero"),
        ("multiplicative_renorm", "padding_invariance", "padded keys of 1e30"),
    ],
)
def test_the_certificate_of_another_mask_is_red_where_it_fails(mode, check, sentence):
    found = certify(f"scaled_dot[normalizer=softmax[mask_mode={mode}]]", checks=[check, "shapes"])
    assert found.passed == ("shapes",)
    assert sentence in found.failed[check]


def test_a_study_may_search_the_temperature_and_not_the_mask():
    from bench.api.config import search_ranges
    from variants.normalizers.softmax import SoftmaxConfig

    assert set(search_ranges(SoftmaxConfig)) == {"temperature"}


@pytest.mark.parametrize(
    ("option", "complaint"),
    [("temperature=0", "temperature must be above 0"), ("mask_mode=neg_1e9", "neg_1e6_fill")],
)
def test_wrong_options_are_refused(option, complaint, beneath):
    with pytest.raises(InvalidConfig, match=complaint):
        beneath(f"scaled_dot[normalizer=softmax[{option}]]")


def test_the_written_out_selector_names_temperature_and_mask():
    shown = resolve("scaled_dot").complete.show()
    assert "normalizer=softmax[mask_mode=neg_inf,temperature=1.0]" in shown
