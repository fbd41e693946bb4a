import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from variants.losses.doubly_stochastic import DoublyStochasticConfig, DoublyStochasticLoss


def term(inputs, **options):
    found, carry = DoublyStochasticLoss(DoublyStochasticConfig(**options))(inputs, {})
    assert carry == {}
    return found


def test_golden_sum(seen, golden_weights):
    assert 3 * term(seen(golden_weights)).item() == pytest.approx(0.32)
    assert 3 * term(seen(golden_weights), weight=2.5).item() == pytest.approx(0.8)
    assert term(seen(golden_weights), target="ratio").item() == term(seen(golden_weights)).item()


@pytest.mark.parametrize("target", ["one", "ratio"])
def test_it_equals_loops_over_real_keys_and_scored_steps(seen, drawn_weights, target):
    lengths, steps = [4, 2, 1], [5, 3, 4]
    weights = drawn_weights(lengths=lengths)
    mask = [[t < count for t in range(5)] for count in steps]
    found = term(seen(weights, lengths=lengths, mask=mask), target=target)
    total = 0.0
    for row in range(3):
        for s in range(lengths[row]):
            covered = sum(weights[row, 0, t, s].item() for t in range(steps[row]))
            wanted = 1.0 if target == "one" else steps[row] / lengths[row]
            total += (wanted - covered) ** 2
    assert found.item() == pytest.approx(total / sum(steps), abs=1e-12)


def test_a_permutation_costs_nothing_and_has_no_gradient(seen):
    weights = torch.eye(4, dtype=torch.float64)[[2, 0, 3, 1]][None, None].requires_grad_()
    found = term(seen(weights))
    found.backward()
    assert found.item() == 0
    assert not weights.grad.any()


def test_the_ratio_can_be_met_where_one_cannot(seen):
    even = torch.full((1, 1, 6, 3), 1 / 3, dtype=torch.float64)
    assert term(seen(even), target="ratio").item() == pytest.approx(0)
    assert term(seen(even)).item() == pytest.approx(3 / 6)


def test_the_gradient_pulls_towards_keys_that_got_too_little(seen, golden_weights):
    weights = golden_weights.requires_grad_()
    term(seen(weights)).backward()
    assert torch.equal(weights.grad.sign()[0, 0, 0], torch.tensor([1.0, -1.0, 0.0]).double())


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        DoublyStochasticConfig(weight=-1.0)


@pytest.mark.parametrize("regime", ["causal", "self", "pool"])
def test_places_without_a_target_over_a_source_are_refused(regime):
    reason = resolve("doubly_stochastic").refusal(frozenset({regime, "padding"}))
    assert reason is not None
    assert "doubly_stochastic: it sums weights over" in reason
