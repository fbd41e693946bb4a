import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


def test_without_its_bias_it_is_the_activation_of_the_general_score(component, ask, draw):
    drawn = draw()
    call = ask(drawn.query, drawn.source)
    general = component("score", "general")
    for name, function in (("tanh", torch.tanh), ("relu", torch.relu)):
        score = component("score", f"general_activated[activation={name}]")
        with torch.no_grad():
            score.weight.copy_(general.weight)
            score.bias.fill_(0.3)
        expected = function(general.energy(call, None) + 0.3)
        torch.testing.assert_close(score.energy(call, None), expected, rtol=0, atol=1e-12)


def test_the_tanh_bounds_every_weight(component, ask, draw):
    drawn = draw(2, 2, 4, 50, lengths=())
    score = component("score", "general_activated")
    with torch.no_grad():
        score.weight.mul_(100.0)
    weights = torch.softmax(score.energy(ask(drawn.query, drawn.source), None), -1)
    bound = math.e**2 / (math.e**2 + 49)
    assert weights.max() <= bound
    assert weights.max() > 0.3 * bound


def test_an_unknown_activation_is_refused():
    with pytest.raises(InvalidConfig, match=r"activation.*sine"):
        variants.build("general_activated[activation=sine]", dim=4, heads=1)
