import pytest
import torch


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("additive[width=3]", regime)


def test_queries_and_keys_may_differ_in_width(equals_oracle):
    equals_oracle("additive[width=3]", heads=None, dim=4, source_dim=6)


def test_golden_energies_weights_and_context(component, ask, golden):
    score = component("score", "additive[width=2]", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.query_map.copy_(torch.eye(2)[None])
        score.key_map.copy_(torch.eye(2)[None])
        score.bias.zero_()
        score.v.copy_(torch.tensor([[[1.0], [-1.0]]]))
    parts = {"score": score.prepare(golden.source)}
    energy = score.energy(ask(golden.query, golden.source, parts=parts), None)
    assert energy.flatten().tolist() == pytest.approx([0.964028, 0.0, 0.202433], abs=1e-6)
    weights = torch.softmax(energy, -1)
    assert weights.flatten().tolist() == pytest.approx([0.541045, 0.206330, 0.252626], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.298921, 1.170536], abs=1e-6)


def test_energies_stay_within_the_sum_of_absolute_v(component, ask, draw):
    drawn = draw()
    score = component("score", "additive[width=4]")
    parts = {"score": score.prepare(drawn.source)}
    energy = score.energy(ask(10 * drawn.query, drawn.source, parts=parts), None)
    bound = score.v.detach().abs().sum((1, 2)).view(1, -1, 1, 1)
    assert (energy.abs() <= bound).all()
