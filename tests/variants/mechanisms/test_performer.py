import math

import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.mechanisms.performer import PerformerConfig, orthogonal_directions

NOWHERE = torch.arange(1)


def test_the_mean_over_draws_is_the_exponential_of_the_scaled_product(beneath, draw):
    drawn = draw(1, 1, 1, 1, widths=(5, 5, 4), lengths=())
    query, key = 0.7 * drawn.query, 0.7 * drawn.source.key
    found = []
    for seed in range(400):
        variant = beneath(f"performer[directions=20,seed={seed}]", heads=1)
        exponents = variant._exponents(query)
        products = exponents.exp() * variant.of_keys(key, NOWHERE) * variant.num_maps**-0.5
        found.append(float(products.sum()))
    expected = math.exp(float((query * key).sum()) / math.sqrt(5))
    mean = sum(found) / len(found)
    spread = math.sqrt(sum((x - mean) ** 2 for x in found)) / len(found)
    assert abs(mean - expected) < 4 * spread < 0.1 * expected


def test_many_directions_come_near_softmax_attention(beneath, answer, draw):
    drawn = draw(1, 1, 6, 6, lengths=())
    drawn.source.key.mul_(0.5)
    gaps = []
    for count in (16, 4096):
        variant = beneath(f"performer[directions={count}]", heads=1)
        found = answer(variant, 0.5 * drawn.query, drawn.source).output
        energy = 0.5 * drawn.query @ drawn.source.key.mT / math.sqrt(5)
        expected = energy.softmax(-1) @ drawn.source.value
        gaps.append(float((found - expected).abs().max()))
    assert gaps[1] < 0.05
    assert gaps[1] < gaps[0]


def test_directions_of_a_block_are_orthogonal_and_those_of_a_seed_are_the_same():
    drawn = orthogonal_directions(7, 5, seed=3)
    products = drawn[:5] @ drawn[:5].T
    torch.testing.assert_close(products, torch.diag(products.diagonal()), rtol=0, atol=1e-5)
    assert drawn.shape == (7, 5)
    assert torch.equal(drawn, orthogonal_directions(7, 5, seed=3))
    assert not torch.equal(drawn, orthogonal_directions(7, 5, seed=4))


def test_lengths_of_directions_are_those_of_normal_vectors():
    squares = orthogonal_directions(4000, 8, seed=0).square().sum(1)
    assert abs(float(squares.mean()) - 8) < 0.3


def test_the_directions_are_no_parameter_but_are_stored(beneath):
    variant = beneath("performer")
    assert not list(variant.parameters())
    assert set(variant.state_dict()) == {"directions"}


def test_no_direction_is_refused():
    with pytest.raises(InvalidConfig, match="directions must be positive, got 0"):
        PerformerConfig(directions=0)
