import math

import pytest
import torch

from bench.api.source import Source


@pytest.mark.parametrize(("keys", "bound"), [(50, 0.131), (1000, 0.00734), (10000, 0.00074)])
def test_no_weight_exceeds_the_published_bound(component, ask, keys, bound):
    """The best case: one key at the top of the tanh, all others at its bottom."""
    key = torch.full((1, 1, keys, 1), -50.0, dtype=torch.float64)
    key[:, :, 3] = 50.0
    source = Source(key, key)
    score = component("score", "feed_forward", heads=1, widths=(1, 1, 1))
    with torch.no_grad():
        score.weight.fill_(1.0)
    query = torch.zeros(1, 1, 1, 1, dtype=torch.float64)
    energy = score.energy(ask(query, source, parts={"score": score.prepare(source)}), None)
    most = torch.softmax(energy, -1).max().item()
    assert most == pytest.approx(math.e**2 / (math.e**2 + keys - 1), abs=1e-12)
    assert most == pytest.approx(bound, rel=0.01)


def test_every_query_gets_the_same_weights(beneath, answer, draw):
    drawn = draw()
    found = answer(beneath("feed_forward"), drawn.query, drawn.source)
    assert torch.equal(found.weights, found.weights[:, :, :1].expand_as(found.weights))
    assert found.weights.std(-1).max() > 0.02


def test_it_is_a_context_vector_of_one_unit(beneath, answer, draw):
    drawn = draw()
    plain, wider = beneath("feed_forward"), beneath("context_vector[width=1]")
    with torch.no_grad():
        wider.score.key_map.copy_(plain.score.weight)
        wider.score.bias.copy_(plain.score.bias)
        wider.score.context.fill_(1.0)
    outputs = [answer(v, drawn.query, drawn.source).output for v in (plain, wider)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)
