import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.source import Source


def test_it_is_the_additive_score_without_its_query(beneath, answer, draw):
    drawn = draw()
    mine, additive = beneath("context_vector[width=4]"), beneath("additive[width=4]")
    with torch.no_grad():
        additive.score.query_map.zero_()
        additive.score.key_map.copy_(mine.score.key_map)
        additive.score.bias.copy_(mine.score.bias)
        additive.score.v.copy_(mine.score.context)
    outputs = [answer(v, drawn.query, drawn.source).output for v in (mine, additive)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_every_query_gets_the_same_weights(beneath, answer, draw):
    drawn = draw()
    found = answer(beneath("context_vector"), drawn.query, drawn.source)
    assert torch.equal(found.weights, found.weights[:, :, :1].expand_as(found.weights))
    assert found.weights.std(-1).max() > 0.02


def test_energies_stay_within_the_sum_of_absolute_weights(component, draw):
    drawn = draw()
    score = component("score", "context_vector[width=4]")
    energy = score.prepare(Source(100 * drawn.source.key, drawn.source.value))["energy"]
    bound = score.context.detach().abs().sum((1, 2)).view(1, -1, 1, 1)
    assert (energy.abs() <= bound).all()


def test_no_units_are_refused():
    with pytest.raises(InvalidConfig, match="context_vector: width must be at least 1, got 0"):
        variants.build("context_vector[width=0]", dim=4, heads=1)
