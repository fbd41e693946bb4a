from dataclasses import replace

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from variants.losses.quantity import EOS, QuantityConfig, QuantityLoss


def term(inputs, **options):
    found, carry = QuantityLoss(QuantityConfig(**options))(inputs, {})
    assert carry == {}
    return found


def test_what_each_sentence_misses_is_summed_and_divided_by_scored_targets(seen, drawn_weights):
    weights = drawn_weights() * torch.tensor([0.9, 0.5, 0.2])[:, None, None, None]
    steps = [5, 3, 2]
    mask = [[t < count for t in range(5)] for count in steps]
    missing = 5 * (1 - 0.9) + 3 * (1 - 0.5) + 2 * (1 - 0.2)
    assert term(seen(weights, mask=mask)).item() == pytest.approx(missing / 10)
    assert term(seen(weights, mask=mask), weight=3.0).item() == pytest.approx(3 * missing / 10)


def test_sentences_are_not_set_off_against_each_other(seen, drawn_weights):
    # one has a whole word too much, the other a whole word too little
    weights = drawn_weights(rows=2, steps=4) * torch.tensor([1.25, 0.75])[:, None, None, None]
    assert term(seen(weights)).item() == pytest.approx(2 / 8)


def test_heads_are_averaged(seen, drawn_weights):
    weights = drawn_weights(heads=2) * torch.tensor([1.0, 0.5])[None, :, None, None]
    assert term(seen(weights)).item() == pytest.approx(0.25)


def test_whole_weights_cost_nothing_and_the_gradient_asks_for_more(seen, drawn_weights):
    assert term(seen(drawn_weights())).item() == pytest.approx(0, abs=1e-12)
    weights = (drawn_weights() / 2).requires_grad_()
    term(seen(weights)).backward()
    assert (weights.grad < 0).all()


def test_rounding_alone_has_no_gradient(seen, drawn_weights):
    weights = (drawn_weights() * (1 + 1e-8)).requires_grad_()
    term(seen(weights)).backward()
    assert not weights.grad.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("heads", [1, 3])
def test_rounding_to_a_narrow_format_has_no_gradient(dtype, heads, seen):
    """Every word has all its weight before it is rounded, in sentences of 1 to 63 words."""
    eps = torch.finfo(dtype).eps
    # both are rounded down by nearly as much as can be
    half, quarter = 0.5 * (1 + 0.48 * eps), 0.25 * (1 + 0.48 * eps)
    row = torch.tensor([half, quarter, 1 - half - quarter], dtype=torch.float64).to(dtype)
    weights = row.repeat(4, heads, 63, 1).requires_grad_()
    steps = torch.tensor([63, 30, 3, 1])
    found = term(seen(weights, mask=(torch.arange(63) < steps[:, None]).tolist()))
    assert found.item() == 0
    found.backward()
    assert not weights.grad.any()


def test_sums_of_a_narrow_format_lose_nothing(seen, drawn_weights):
    """Five of 200 words are missing; bfloat16 has whole numbers alone from 128 on."""
    weights = drawn_weights(rows=2, steps=200, keys=3)
    weights[:, :, :5] = 0
    weights = (weights * 0.9975).bfloat16()
    found = term(seen(weights))
    assert found.dtype == torch.float32
    exact = (200 - weights.double().sum((1, 2, 3))).sum().item() / 400
    assert found.item() == pytest.approx(exact, rel=1e-5)


def test_what_is_missing_beyond_rounding_is_told_in_a_narrow_format(seen, drawn_weights):
    weights = drawn_weights(rows=2, steps=10).bfloat16()
    weights[:, :, 3] = 0
    weights.requires_grad_()
    found = term(seen(weights))
    assert found.item() == pytest.approx(2 / 20, abs=5e-3)
    found.backward()
    assert (weights.grad < 0).all()


def test_a_sentence_in_single_precision_has_a_loss_from_a_hundred_thousandth_of_a_word_on(
    seen, drawn_weights
):
    for share, told in ((1 - 2e-6, False), (1 - 2e-5, True)):
        weights = (drawn_weights(rows=1, steps=1) * share).float().requires_grad_()
        term(seen(weights)).backward()
        assert bool(weights.grad.any()) == told


def test_padded_steps_have_no_gradient(seen, drawn_weights):
    weights = (drawn_weights(rows=1, steps=3) / 2).requires_grad_()
    term(seen(weights, mask=[[True, True, False]])).backward()
    assert weights.grad[0, 0, :2].all()
    assert not weights.grad[0, 0, 2].any()


def test_the_end_of_a_sentence_wants_weight_unless_it_is_left_out(seen, drawn_weights):
    # the words have all their weight, and each end, behind them, has none
    spoken = torch.tensor([[7, 8, 9, EOS], [7, EOS, 0, 0]])
    weights = drawn_weights(rows=2, steps=4) * (spoken != EOS)[:, None, :, None]
    inputs = seen(weights, mask=(spoken > 0).tolist())
    inputs = replace(inputs, batch=replace(inputs.batch, targets=spoken))
    assert term(inputs).item() == pytest.approx(2 / 6)
    assert term(inputs, end=False).item() == pytest.approx(0, abs=1e-12)


def test_the_weight_of_an_end_that_is_left_out_is_not_counted(seen, drawn_weights):
    spoken = torch.tensor([[7, 8, EOS]])
    weights = drawn_weights(rows=1, steps=3).requires_grad_()
    inputs = seen(weights / 2)
    inputs = replace(inputs, batch=replace(inputs.batch, targets=spoken))
    found = term(inputs, end=False)
    assert found.item() == pytest.approx(1 / 3)
    found.backward()
    assert weights.grad[0, 0, :2].all()
    assert not weights.grad[0, 0, 2].any()


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        QuantityConfig(weight=-1.0)


@pytest.mark.parametrize("regime", ["causal", "self", "pool"])
def test_places_without_a_target_over_a_source_are_refused(regime):
    reason = resolve("additive[loss=quantity]").refusal(frozenset({regime, "padding"}))
    assert reason is not None
    assert "quantity: it sums weights over" in reason
