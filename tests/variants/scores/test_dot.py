import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.source import Source


def test_golden_weights_and_context(component, ask, golden):
    score = component("score", "dot", heads=1, widths=(2, 2, 2))
    weights = torch.softmax(score.energy(ask(golden.query, golden.source), None), -1)
    assert weights.flatten().tolist() == pytest.approx([0.422319, 0.155362, 0.422319], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.689275, 1.577681], abs=1e-6)


def test_golden_weights_with_the_last_key_masked(beneath, answer, golden):
    mask = torch.tensor([[True, True, False]])
    source = Source(golden.source.key, golden.source.value, mask)
    found = answer(beneath("dot", heads=1, widths=(2, 2, 2)), golden.query, source)
    assert found.weights.flatten().tolist() == pytest.approx([0.731059, 0.268941, 0.0], abs=1e-6)


def test_it_is_the_scaled_dot_product_times_the_root_of_the_width(component, ask, draw):
    drawn = draw()
    call = ask(drawn.query, drawn.source)
    dot = component("score", "dot").energy(call, None)
    scaled = component("score", "scaled_dot").energy(call, None)
    torch.testing.assert_close(dot, scaled * 5**0.5, rtol=0, atol=1e-12)


def test_a_longer_query_is_a_lower_temperature(component, ask, draw):
    drawn = draw()
    score = component("score", "dot")
    plain = score.energy(ask(drawn.query, drawn.source), None)
    scaled = score.energy(ask(3 * drawn.query, drawn.source), None)
    torch.testing.assert_close(
        torch.softmax(scaled, -1), torch.softmax(plain / (1 / 3), -1), rtol=0, atol=1e-12
    )


def test_its_dot_form_is_its_energy(component, ask, draw):
    drawn = draw()
    score = component("score", "dot")
    call = ask(drawn.query, drawn.source)
    query, key, scale = score.dot_form(call)
    torch.testing.assert_close(query @ key.mT * scale, score.energy(call, None))


def test_widths_that_differ_are_refused():
    with pytest.raises(Refused, match="dot needs queries and keys of equal width"):
        variants.build("dot", dim=4, source_dim=6, regime="cross")
