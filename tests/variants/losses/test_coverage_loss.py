import itertools

import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.losses.coverage_loss import CoverageLoss, CoverageLossConfig


def term(inputs, **options):
    options = {"start": 0.0, **options}
    found, carry = CoverageLoss(CoverageLossConfig(**options))(inputs, {})
    assert carry == {}
    return found


def per_step(seen, weights, **given):
    """The loss of every step, by masking the later ones."""
    steps = weights.shape[2]
    whole = []
    for last in range(1, steps + 1):
        mask = [[t < last for t in range(steps)]]
        whole.append(last * term(seen(weights, mask=mask, **given)).item())
    return [whole[0], *(after - before for before, after in itertools.pairwise(whole))]


def test_golden_loss_of_each_step(seen, golden_weights):
    assert per_step(seen, golden_weights) == pytest.approx([0.0, 0.9, 0.4])
    assert 3 * term(seen(golden_weights), weight=2.0).item() == pytest.approx(2.6)


def test_it_equals_loops(seen, drawn_weights):
    lengths, steps = [4, 2, 1], [5, 3, 4]
    weights = drawn_weights(lengths=lengths)
    mask = [[t < count for t in range(5)] for count in steps]
    total = 0.0
    for row in range(3):
        covered = [0.0] * 4
        for t in range(steps[row]):
            for s in range(4):
                weight = weights[row, 0, t, s].item()
                total += min(weight, covered[s])
                covered[s] += weight
    found = term(seen(weights, lengths=lengths, mask=mask))
    assert found.item() == pytest.approx(total / 12, abs=1e-12)


def test_a_step_costs_at_most_one_and_the_first_nothing(seen, drawn_weights):
    for seed in range(5):
        costs = per_step(seen, drawn_weights(rows=1, steps=6, seed=seed))
        assert costs[0] == 0
        assert all(0 < cost <= 1 + 1e-12 for cost in costs[1:])
    same = torch.tensor([0.2, 0.8]).double().expand(1, 1, 4, 2)
    assert per_step(seen, same) == pytest.approx([0.0, 1.0, 1.0, 1.0])


def test_each_key_once_costs_nothing(seen):
    assert term(seen(torch.eye(4)[None, None])).item() == 0


def test_it_is_off_until_its_share_of_training_has_passed(seen, golden_weights):
    assert CoverageLossConfig().start == 0.99
    for progress, expected in ((0.0, 0.0), (0.49, 0.0), (0.5, 1.3), (1.0, 1.3)):
        given = seen(golden_weights, progress=progress)
        assert 3 * term(given, start=0.5).item() == pytest.approx(expected)


def test_weight_and_start_are_checked():
    with pytest.raises(InvalidConfig, match="got -1"):
        CoverageLossConfig(weight=-1.0)
    with pytest.raises(InvalidConfig, match=r"start in \[0, 1\]"):
        CoverageLossConfig(start=1.5)
