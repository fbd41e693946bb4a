import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, k):
    equals_oracle(f"top_k[k={k}]", regime)
    equals_oracle(f"top_k[k={k},score=additive[width=3]]", regime, padded=False)


def test_only_the_k_best_keys_are_read(row):
    weights = row("top_k[k=2]", [0.1, 2.0, -1.0, 1.0])
    assert weights == pytest.approx([0, *_pair(2.0, 1.0)[:1], 0, *_pair(2.0, 1.0)[1:]])


def _pair(one, two):
    return torch.softmax(torch.tensor([one, two], dtype=torch.float64), 0).tolist()


@pytest.mark.parametrize("k", [4, 9])
def test_with_as_many_keys_as_there_are_it_is_the_softmax(row, k):
    energies = [1.0, 0.5, 0.1, -1.0]
    assert row(f"top_k[k={k}]", energies) == row("softmax", energies)


def test_with_one_key_it_is_hardmax(row):
    energies = [1.0, 3.5, 0.1, -1.0]
    assert row("top_k[k=1]", energies) == row("hardmax", energies) == [0, 1, 0, 0]


def test_hidden_keys_do_not_take_a_place(row):
    weights = row("top_k[k=2]", [9.0, 1.0, 8.0, 0.5], [False, True, False, True])
    assert weights == pytest.approx([0, _pair(1.0, 0.5)[0], 0, _pair(1.0, 0.5)[1]])
    assert row("top_k[k=2]", [1.0, 2.0], [False, False]) == [0, 0]


def test_keys_that_tie_with_the_last_one_are_read_too(row):
    assert row("top_k[k=1]", [2.0, 1.0, 2.0]) == [0.5, 0, 0.5]


def test_only_keys_that_are_read_get_a_gradient(aligned, energies):
    energy = energies(1, 1, 1, 6)
    weights = aligned("top_k[k=3]", energy)
    (weights * torch.arange(6.0)).sum().backward()
    assert torch.equal(energy.grad != 0, weights != 0)
    assert int((weights != 0).sum()) == 3


def test_a_choice_of_no_key_is_refused():
    with pytest.raises(InvalidConfig, match="k must be at least 1, got 0"):
        variants.build("top_k[k=0]", dim=8, heads=2)
