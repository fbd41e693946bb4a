"""Numbers by distance and by key, against an index."""

import pytest
import torch

from variants.positions import relative_distances
from variants.positions.relative_distances import collect, spread

CASES = [
    (0, 6, 6, 2),
    (0, 6, 6, 0),
    (0, 6, 6, 9),
    (5, 1, 6, 2),
    (3, 3, 9, 1),
    (0, 4, 9, 3),
    (7, 4, 3, 2),
]
"""First place, queries, keys, clip."""


def index(first, queries, keys, clip):
    distance = torch.arange(keys) - (first + torch.arange(queries))[:, None]
    return distance.clamp(-clip, clip) + clip


def normal(*shape):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.fixture(params=[1, 40, 10**6], autouse=True)
def _block(request, monkeypatch):
    monkeypatch.setattr(relative_distances, "BLOCK", request.param)


@pytest.mark.parametrize("case", CASES)
def test_each_key_gets_the_number_of_its_distance(case):
    first, queries, keys, clip = case
    by_distance = normal(2, 3, queries, 2 * clip + 1)
    wanted = by_distance.gather(-1, index(*case).expand(2, 3, -1, -1))
    assert torch.equal(spread(by_distance, first, keys), wanted)


@pytest.mark.parametrize("case", CASES)
def test_each_distance_gets_the_sum_of_its_keys(case):
    first, queries, keys, clip = case
    weights = normal(2, 3, queries, keys)
    wanted = weights.new_zeros(2, 3, queries, 2 * clip + 1)
    wanted = wanted.scatter_add(-1, index(*case).expand_as(weights), weights)
    found = collect(weights, first, clip)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-14)
    assert torch.equal(found == 0, wanted == 0), "nothing is left of what cancels"


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_their_gradients_equal_finite_differences(case):
    first, queries, keys, clip = case
    by_distance = normal(1, 2, queries, 2 * clip + 1).requires_grad_()
    weights = normal(1, 2, queries, keys).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: spread(x, first, keys), by_distance)
    assert torch.autograd.gradcheck(lambda x: collect(x, first, clip), weights)
    # both are linear, so one direction drawn at random shows the second derivative too
    assert torch.autograd.gradgradcheck(
        lambda x: spread(x, first, keys), by_distance, fast_mode=True
    )
    assert torch.autograd.gradgradcheck(lambda x: collect(x, first, clip), weights, fast_mode=True)


def test_memory_in_any_order_is_read_right():
    weights = normal(6, 5, 2, 3).permute(2, 3, 1, 0)
    assert torch.equal(collect(weights, 0, 2), collect(weights.contiguous(), 0, 2))
    by_distance = normal(5, 3, 2, 5).permute(2, 1, 3, 0)[..., :3]
    assert torch.equal(spread(by_distance, 0, 6), spread(by_distance.contiguous(), 0, 6))
