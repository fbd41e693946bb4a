import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.losses.fertility_hinge import FertilityHingeConfig, FertilityHingeLoss


def term(inputs, **options):
    found, carry = FertilityHingeLoss(FertilityHingeConfig(**options))(inputs, {})
    assert carry == {}
    return found


def test_only_what_is_over_the_limit_costs(seen, golden_weights):
    given = seen(golden_weights)
    assert 3 * term(given, limit=1.0).item() == pytest.approx(0.4**2)
    assert 3 * term(given, limit=0.5).item() == pytest.approx(0.9**2 + 0.1**2 + 0.5**2)
    assert term(given, limit=1.5).item() == 0
    assert 3 * term(given, limit=1.0, weight=5.0).item() == pytest.approx(0.8)


def test_it_equals_loops_over_words(seen, drawn_weights):
    lengths, tokens = [4, 2], [[7, 8, 9, 2], [7, 2, 0, 0]]
    weights = drawn_weights(rows=2, steps=7, lengths=lengths)
    found = term(seen(weights, tokens=tokens, lengths=lengths), limit=1.2)
    total = 0.0
    for row, words in enumerate(tokens):
        for s, word in enumerate(words):
            covered = sum(weights[row, 0, t, s].item() for t in range(7))
            total += max(0.0, covered - 1.2) ** 2 if word > 2 else 0.0
    assert total > 0
    assert found.item() == pytest.approx(total / 14, abs=1e-12)


def test_below_the_limit_there_is_no_gradient(seen, golden_weights):
    weights = golden_weights.requires_grad_()
    term(seen(weights), limit=1.0).backward()
    assert not weights.grad[..., 1:].any()
    assert (weights.grad[..., 0] > 0).all()
    assert torch.isfinite(weights.grad).all()


def test_weight_and_limit_must_not_be_negative():
    for options in ({"weight": -1.0}, {"limit": -1.0}):
        with pytest.raises(InvalidConfig, match=r"got .*-1"):
            FertilityHingeConfig(**options)
