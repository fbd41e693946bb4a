import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

NEAR = {"rtol": 0, "atol": 1e-12}


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", ["tupe", "tupe[position=tupe+t5_bias]"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(options, regime)


def test_it_is_equation_seven_with_both_terms_over_the_root_of_two_widths(answer, beneath, draw):
    drawn = draw(2, 2, 7, 7, lengths=())
    variant = beneath("tupe", regime="self")
    position = variant.positions[0]
    places = position.table[:7]
    query = torch.einsum("nd,hde->hne", places, position.to_query)
    key = torch.einsum("nd,hde->hne", places, position.to_key)
    energy = drawn.query @ drawn.source.key.mT + query @ key.mT
    wanted = (energy / (2 * 5) ** 0.5).softmax(-1) @ drawn.source.value
    torch.testing.assert_close(answer(variant, drawn.query, drawn.source).output, wanted, **NEAR)


def test_words_and_positions_never_meet(component, ask, draw):
    """What stands at a place changes nothing of what the places say to one another."""
    position = component("position", "tupe", regime="self")
    one, two = (draw(1, 2, 6, 6, seed=seed) for seed in (0, 1))
    found = [position.energy(ask(x.query, x.source)) for x in (one, two)]
    assert torch.equal(*found)


def test_vectors_of_zeros_leave_content_alone(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("scaled_dot[position=tupe]", regime="self")
    with torch.no_grad():
        variant.positions[0].table.zero_()
    plain = beneath("scaled_dot", regime="self")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, **NEAR)


def test_positions_beyond_the_table_and_places_without_a_meaning_are_refused(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    with pytest.raises(Refused, match="max_length=5, but the sequence has 6 tokens"):
        answer(beneath("tupe[max_length=5]", regime="self"), drawn.query, drawn.source)
    assert answer(beneath("tupe[max_length=6]", regime="self"), drawn.query, drawn.source)
    with pytest.raises(InvalidConfig, match="max_length must be at least 1"):
        variants.build("tupe[max_length=0]", dim=8, heads=2, regime="self")
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="tupe: its positions are of one sequence"):
            variants.build("tupe", dim=8, heads=2, regime=regime)
