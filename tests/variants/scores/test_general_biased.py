import pytest
import torch

from bench.api.source import Source


def test_it_is_the_general_score_plus_a_prior_on_content(component, ask, draw):
    drawn = draw(widths=(3, 5, 4))
    call = ask(drawn.query, drawn.source)
    biased = component("score", "general_biased", widths=(3, 5, 4))
    general = component("score", "general", widths=(3, 5, 4))
    with torch.no_grad():
        general.weight.copy_(biased.weight)
    prior = torch.einsum("bhsj,hj->bhs", drawn.source.key, biased.bias[:, 0]).unsqueeze(2)
    assert prior.std() > 0.1
    expected = general.energy(call, None) + prior
    torch.testing.assert_close(biased.energy(call, None), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["general", "general_biased"])
def test_a_bias_on_the_keys_is_a_constant_of_the_query_and_changes_no_weight(
    component, ask, draw, name
):
    drawn = draw(lengths=())
    score = component("score", name)
    shifted = drawn.source.key + torch.linspace(-1, 1, 5, dtype=torch.float64)
    moved = ask(drawn.query, Source(shifted, drawn.source.value))
    energies = [score.energy(call, None) for call in (ask(drawn.query, drawn.source), moved)]
    assert (energies[0] - energies[1]).abs().max() > 0.1
    weights = [torch.softmax(energy, -1) for energy in energies]
    torch.testing.assert_close(*weights, rtol=0, atol=1e-12)


def test_its_dot_form_is_its_energy(component, ask, draw):
    drawn = draw(widths=(3, 5, 4))
    score = component("score", "general_biased", widths=(3, 5, 4))
    call = ask(drawn.query, drawn.source)
    query, key, scale = score.dot_form(call)
    torch.testing.assert_close(query @ key.mT * scale, score.energy(call, None))
