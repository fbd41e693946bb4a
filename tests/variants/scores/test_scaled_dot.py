import pytest
import torch


def test_golden_weights_and_context(component, ask, golden):
    score = component("score", "scaled_dot", heads=1, widths=(2, 2, 2))
    weights = torch.softmax(score.energy(ask(golden.query, golden.source), None), -1)
    assert weights.flatten().tolist() == pytest.approx([0.401112, 0.197776, 0.401112], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.604448, 1.598888], abs=1e-6)


def test_its_variance_is_one_whatever_the_width(component, ask, draw):
    for width in (4, 64, 256):
        drawn = draw(4, 2, 20, 20, (width, width, 2), lengths=())
        score = component("score", "scaled_dot", widths=(width, width, 2))
        energy = score.energy(ask(drawn.query, drawn.source), None)
        assert energy.var().item() == pytest.approx(1.0, abs=0.15)
