from itertools import pairwise

import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.mechanisms.hopfield import HopfieldConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self"])
def test_one_step_is_scaled_dot_product_attention(beneath, answer, draw, regime):
    drawn = draw(3, 2, 6, 6)
    one = answer(beneath("hopfield[steps=1]", regime=regime), drawn.query, drawn.source)
    two = answer(beneath("scaled_dot", regime=regime), drawn.query, drawn.source)
    torch.testing.assert_close(one.output, two.output)
    torch.testing.assert_close(one.weights, two.weights)


def test_a_second_step_asks_with_what_the_first_one_found(beneath, answer, draw):
    drawn = draw(2, 2, 4, 6, lengths=())
    scale = 5**-0.5
    moved = (scale * drawn.query @ drawn.source.key.mT).softmax(-1) @ drawn.source.key
    expected = (scale * moved @ drawn.source.key.mT).softmax(-1) @ drawn.source.value
    found = answer(beneath("hopfield[steps=2]"), drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected)


def test_with_a_large_beta_the_nearest_of_separated_patterns_is_retrieved(beneath, answer, draw):
    drawn = draw(1, 1, 5, 5, lengths=())
    drawn.source.key[:] = torch.eye(5)
    drawn.query[:] = torch.eye(5) + 0.2 * drawn.query
    found = answer(beneath("hopfield[beta=200.0,steps=2]", heads=1), drawn.query, drawn.source)
    torch.testing.assert_close(found.weights[0, 0], torch.eye(5, dtype=torch.float64))


def test_the_energy_of_the_network_falls_with_every_step(beneath, answer, draw):
    drawn = draw(1, 1, 8, 6, lengths=())
    key, scale = drawn.source.key, 5**-0.5

    def energy(x):
        return x.square().sum(-1) / 2 - (scale * x @ key.mT).logsumexp(-1) / scale

    x, seen = drawn.query, []
    for _ in range(4):
        seen.append(energy(x))
        x = (scale * x @ key.mT).softmax(-1) @ key
    for before, after in pairwise(seen):
        assert (after <= before + 1e-12).all()


@pytest.mark.parametrize("options", [{"steps": 0}, {"beta": 0.0}])
def test_no_step_and_no_temperature_are_refused(options):
    with pytest.raises(InvalidConfig, match="hopfield"):
        HopfieldConfig(**options)
