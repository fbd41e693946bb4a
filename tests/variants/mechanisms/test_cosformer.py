import math
from dataclasses import replace

import pytest
import torch

import variants
from bench.api.errors import Refused
from variants.mechanisms.cosformer import Cosformer


def rectified(drawn):
    return drawn.query.relu() @ drawn.source.key.relu().mT


@pytest.mark.parametrize("regime", ["causal", "self"])
def test_it_equals_the_quadratic_form_with_the_cosine_of_the_distance(
    beneath, answer, draw, regime
):
    drawn = draw(2, 2, 40, 40, lengths=())
    variant = beneath("cosformer[longest=64]", regime=regime)
    place = torch.arange(40, dtype=torch.float64)
    distance = place[:, None] - place
    weights = rectified(drawn) * torch.cos(math.pi / 2 * distance / 64)
    weights = weights.tril() if regime == "causal" else weights
    expected = weights @ drawn.source.value / (weights.sum(-1, keepdim=True) + 1e-6)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_with_a_very_long_horizon_it_is_rectified_linear_attention(beneath, answer, draw):
    drawn = draw(1, 2, 12, 12, lengths=())
    variant = beneath("cosformer[longest=100000000]", regime="causal")
    weights = rectified(drawn).tril()
    expected = weights @ drawn.source.value / (weights.sum(-1, keepdim=True) + 1e-6)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_behind_the_horizon_places_count_as_the_last_one(beneath):
    variant = beneath("cosformer[longest=16]", regime="causal")
    x = torch.ones(1, 2, 3, 5, dtype=torch.float64)
    found = variant.of_keys(x, torch.tensor([15, 16, 40]))
    torch.testing.assert_close(found[:, :, 2], found[:, :, 1])
    assert not torch.equal(found[:, :, 0], found[:, :, 1])


def test_padding_takes_places(beneath, answer, draw):
    drawn = draw(1, 2, 8, 8, lengths=())
    variant = beneath("cosformer[longest=16]", regime="causal")
    assert variant.counts_places
    mask = torch.tensor([[True] * 4 + [False] * 3 + [True]])
    padded = answer(variant, drawn.query, replace(drawn.source, mask=mask)).output[:, :, 7]
    key, value = drawn.source.key[:, :, mask[0]], drawn.source.value[:, :, mask[0]]
    found = {}
    for name, places in {"kept": [0, 1, 2, 3, 7], "moved": [0, 1, 2, 3, 4]}.items():
        place = torch.tensor(places)
        features = variant.of_keys(key, place)
        weights = variant.of_queries(drawn.query[:, :, 7:], place[-1:]) @ features.mT
        found[name] = (weights @ value / (weights.sum(-1, keepdim=True) + variant.eps))[:, :, 0]
    torch.testing.assert_close(padded, found["kept"])
    assert (padded - found["moved"]).abs().max() > 1e-3


def test_two_sequences_are_refused():
    assert set(Cosformer.unsupported) == {"cross", "pool"}
    with pytest.raises(Refused, match="weights by the distance in one sequence"):
        variants.build("cosformer", dim=8, heads=2, regime="cross")
