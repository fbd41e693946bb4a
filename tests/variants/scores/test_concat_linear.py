import pytest
import torch

from bench.api import registry


@pytest.mark.parametrize("query", [(1.0, 0.0), (0.0, 0.0), (-3.0, 8.0)])
def test_golden_weights_for_any_query(component, ask, golden, query):
    score = component("score", "concat_linear", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.query_map.copy_(torch.tensor([[[5.0], [7.0]]]))
        score.key_map.copy_(torch.tensor([[[1.0], [-1.0]]]))
    parts = {"score": score.prepare(golden.source)}
    asked = torch.tensor(query, dtype=torch.float64).view(1, 1, 1, 2)
    energy = score.energy(ask(asked, golden.source, parts=parts), None)
    offset = 5 * query[0] + 7 * query[1]
    assert energy.flatten().tolist() == pytest.approx([offset + x for x in (1, -1, 0)])
    weights = torch.softmax(energy, -1)
    assert weights.flatten().tolist() == pytest.approx([0.665241, 0.090031, 0.244728], abs=1e-6)


def test_every_query_gets_the_same_weights_and_no_gradient_reaches_it(beneath, answer, draw):
    drawn = draw()
    drawn.query.requires_grad_()
    found = answer(beneath("concat_linear"), drawn.query, drawn.source)
    assert found.weights.std(-1).max() > 0.05
    same = found.weights[:, :, :1].expand_as(found.weights)
    torch.testing.assert_close(found.weights, same, rtol=0, atol=1e-12)
    found.output.square().sum().backward()
    assert drawn.query.grad.abs().max() < 1e-12


def test_it_pools_as_an_additive_score_whose_query_is_not_read(beneath, answer, draw):
    """Small weights make the tanh linear."""
    drawn = draw()
    linear = beneath("concat_linear")
    additive = beneath("additive[width=1]")
    with torch.no_grad():
        additive.score.query_map.zero_()
        additive.score.bias.zero_()
        additive.score.key_map.copy_(linear.score.key_map * 1e-5)
        additive.score.v.fill_(1e5)
    outputs = [answer(v, drawn.query, drawn.source).output for v in (linear, additive)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-8)


def test_it_is_a_control():
    assert registry.find("score", "concat_linear").control
