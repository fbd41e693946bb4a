import pytest
import torch


def test_golden_weights_and_context_of_a_swap(component, ask, golden):
    score = component("score", "general", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.weight.copy_(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]) * 2**0.5)
    weights = torch.softmax(score.energy(ask(golden.query, golden.source), None), -1)
    assert weights.flatten().tolist() == pytest.approx([0.155362, 0.422319, 0.422319], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.422319, 2.111594], abs=1e-6)


def test_with_the_identity_it_is_dot(component, ask, draw):
    drawn = draw()
    call = ask(drawn.query, drawn.source)
    score = component("score", "general")
    with torch.no_grad():
        score.weight.copy_(torch.eye(5, dtype=torch.float64) * 5**0.5)
    dot = component("score", "dot").energy(call, None)
    torch.testing.assert_close(score.energy(call, None), dot, rtol=0, atol=1e-12)


def test_its_dot_form_is_its_energy(component, ask, draw):
    drawn = draw(widths=(3, 5, 4))
    score = component("score", "general", widths=(3, 5, 4))
    call = ask(drawn.query, drawn.source)
    query, key, scale = score.dot_form(call)
    torch.testing.assert_close(query @ key.mT * scale, score.energy(call, None))
