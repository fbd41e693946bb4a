import math

import pytest
import torch

import variants
from bench.api.errors import Refused


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("softpick[score=dot]", regime)
    equals_oracle("softpick[score=dot]", regime, padded=False, seed=3)


def test_weights_are_those_of_the_formula(row):
    energies = [1.0, 0.5, 0.1, -1.0]
    raised = [math.exp(e) - 1 for e in energies]
    total = sum(map(abs, raised)) + 1e-6
    wanted = [max(0.0, r) / total for r in raised]
    assert row("softpick", energies) == pytest.approx(wanted, rel=1e-12)


def test_nothing_is_read_where_all_energies_are_below_zero(row):
    assert row("softpick", [-1.0, -2.0]) == [0, 0]


def test_keys_below_zero_weigh_nothing_and_take_from_the_others(row):
    alone = row("softpick", [1.0])[0]
    beside = row("softpick", [1.0, -3.0])
    assert alone == pytest.approx(1, abs=1e-5)
    assert beside[1] == 0
    assert beside[0] < 0.7


def test_hidden_keys_neither_weigh_nor_count(row):
    found = row("softpick", [1.0, 7.0, -3.0], [True, False, True])
    wanted = row("softpick", [1.0, -3.0])
    assert found == pytest.approx([wanted[0], 0, wanted[1]])
    assert row("softpick", [1.0, 2.0], [False, False]) == [0, 0]


def test_far_above_zero_it_is_the_softmax_and_nothing_overflows(row):
    energies = [801.0, 800.0, 799.0]
    assert row("softpick", energies) == pytest.approx(row("softmax", energies))
    assert row("softpick", [90.0, -90.0], dtype=torch.float16) == [1, 0]


def test_keys_below_zero_still_learn(aligned, energies):
    energy = energies(1, 1, 1, 6)
    aligned("softpick", energy).square().sum().backward()
    assert energy.grad[energy < 0].abs().min() > 0


def test_a_score_that_is_never_positive_is_refused_because_nothing_would_be_read():
    with pytest.raises(Refused, match="reads keys of positive energy alone"):
        variants.build("gaussian_kernel[normalizer=softpick]", dim=8, heads=2)
