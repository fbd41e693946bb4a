import math

import pytest

from bench.api.errors import Refused


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("logistic_sigmoid", regime, padded=padded)


def test_each_weight_is_a_sigmoid_of_its_own_energy(row):
    energies = [0.0, 2.0, -30.0, 700.0, -700.0]
    wanted = [1 / (1 + math.exp(-e)) for e in energies]
    assert row("logistic_sigmoid", energies) == pytest.approx(wanted)


def test_keys_do_not_compete_and_hidden_ones_weigh_nothing(row):
    assert row("logistic_sigmoid", [0.5, 9.0], [True, False]) == [
        row("logistic_sigmoid", [0.5])[0],
        0,
    ]
    assert row("logistic_sigmoid", [0.5, 9.0], [False, False]) == [0, 0]


def test_what_needs_a_distribution_over_keys_is_refused(beneath):
    with pytest.raises(Refused, match="needs explicit attention weights, which logistic_sigmoid"):
        beneath("additive[normalizer=logistic_sigmoid,history=tu_coverage]")
