import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source


def weights_of(score, ask, query, source):
    parts = {"score": score.prepare(source)}
    return torch.softmax(score.energy(ask(query, source, parts=parts), None), -1)


def test_golden_weights_and_context(component, ask, golden):
    score = component("score", "cosine[learned=false,strength=1.0]", heads=1, widths=(2, 2, 2))
    weights = weights_of(score, ask, golden.query, golden.source)
    assert weights.flatten().tolist() == pytest.approx([0.473041, 0.174022, 0.352937], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.531852, 1.406855], abs=1e-6)


def test_the_strength_starts_where_it_was_set_and_is_one_number_a_head(component):
    score = component("score", "cosine", heads=3, seed=None)
    torch.testing.assert_close(
        score.strength(), torch.full((3, 1, 1), 10.0, dtype=torch.float64), rtol=0, atol=1e-5
    )
    fixed = component("score", "cosine[learned=false]", heads=3)
    assert fixed.strength() == 10.0
    assert not list(fixed.parameters())


def test_lengths_of_queries_and_keys_do_not_matter(component, ask, draw):
    drawn = draw(lengths=())
    score = component("score", "cosine")
    plain = weights_of(score, ask, drawn.query, drawn.source)
    longer = drawn.source.key * torch.linspace(0.1, 9, 6, dtype=torch.float64)[:, None]
    source = Source(longer, drawn.source.value)
    found = weights_of(score, ask, 5 * drawn.query, source)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)


def test_without_a_strength_it_cannot_focus_among_many_keys(component, ask):
    query = torch.ones(1, 1, 1, 4, dtype=torch.float64)
    key = torch.cat((query, (-query).expand(1, 1, 99, 4)), 2)
    source = Source(key, key)
    bound = math.e**2 / (math.e**2 + 99)
    score = component("score", "cosine[learned=false,strength=1.0]", heads=1, widths=(4, 4, 4))
    assert weights_of(score, ask, query, source).max().item() == pytest.approx(bound)
    score = component("score", "cosine", heads=1, widths=(4, 4, 4), seed=None)
    assert weights_of(score, ask, query, source).max() > 0.99


def test_its_dot_form_is_its_energy(component, ask, draw):
    drawn = draw()
    score = component("score", "cosine")
    call = ask(drawn.query, drawn.source, parts={"score": score.prepare(drawn.source)})
    query, key, scale = score.dot_form(call)
    torch.testing.assert_close(query @ key.mT * scale, score.energy(call, None))


def test_vectors_of_zeros_have_energy_zero_and_finite_gradients(component, ask, draw):
    drawn = draw(lengths=())
    key = drawn.source.key.clone()
    key[:, :, 2] = 0.0
    key.requires_grad_()
    source = Source(key, drawn.source.value)
    score = component("score", "cosine")
    parts = {"score": score.prepare(source)}
    energy = score.energy(ask(torch.zeros_like(drawn.query), source, parts=parts), None)
    assert not energy.any()
    energy = score.energy(ask(drawn.query, source, parts=parts), None)
    assert not energy[..., 2].any()
    energy.square().sum().backward()
    assert key.grad.isfinite().all()


@pytest.mark.parametrize("options", ["strength=-1.0,learned=false", "strength=0.0"])
def test_impossible_strengths_and_unequal_widths_are_refused(options):
    with pytest.raises(InvalidConfig, match="cosine: strength must be positive"):
        variants.build(f"cosine[{options}]", dim=4, heads=1)
    with pytest.raises(Refused, match="cosine needs queries and keys of equal width"):
        variants.build("cosine", dim=4, source_dim=6, regime="cross")
