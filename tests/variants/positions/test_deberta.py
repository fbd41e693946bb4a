import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import resolve

TERMS = [
    "clip=2",
    "clip=1",
    "clip=30",
    "clip=3,content_to_position=false",
    "clip=3,position_to_content=false",
]


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", TERMS)
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"deberta[{options}]", regime)


def test_golden_rows_are_those_of_equation_three(component):
    """k = 3: what is three tokens away or more shares the first or the last of six rows."""
    position = component("position", "deberta[clip=3]", regime="self")
    rows = [position._row(distance) for distance in range(-5, 6)]
    assert rows == [0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("clip", [1, 2, 4, 9])
@pytest.mark.parametrize("length", [1, 5, 8])
def test_it_is_equation_four_with_three_terms_over_the_root_of_three_widths(
    answer, beneath, draw, clip, length
):
    drawn = draw(2, 2, length, length, lengths=())
    variant = beneath(f"deberta[clip={clip}]", regime="self")
    position = variant.positions[0]
    away = torch.arange(length)[:, None] - torch.arange(length)
    rows = (away + clip).clamp(0, 2 * clip - 1)
    to_place = torch.einsum("bhie,hije->bhij", drawn.query, position.key_table[:, rows])
    to_content = torch.einsum(
        "bhje,hije->bhij", drawn.source.key, position.query_table[:, rows.transpose(0, 1)]
    )
    energy = drawn.query @ drawn.source.key.mT + to_place + to_content
    wanted = (energy / (3 * 5) ** 0.5).softmax(-1) @ drawn.source.value
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_the_key_term_alone_is_that_of_relative_position_vectors(answer, beneath, draw):
    """Their tables run the other way, and have one row more at the far end."""
    drawn = draw(2, 2, 7, 7, lengths=())
    only = "deberta[clip=3,position_to_content=false]"
    variant = beneath(f"scaled_dot[position={only}]", regime="self")
    other = beneath("shaw_rpr[clip=3,use=keys]", regime="self")
    rows = variant.positions[0].key_table.detach().flip(1)
    with torch.no_grad():
        other.positions[0].key_table.copy_(torch.cat((rows[:, :1], rows), 1))
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, other)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_tables_of_zeros_leave_content_alone(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("scaled_dot[position=deberta]", regime="self")
    with torch.no_grad():
        for parameter in variant.positions[0].parameters():
            parameter.zero_()
    plain = beneath("scaled_dot", regime="self")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_options_of_the_variant_go_to_its_positions():
    spec = resolve("deberta[clip=8]")
    assert spec.axes["position"][0].options["clip"] == 8


def test_options_and_places_without_a_meaning_are_refused():
    neither = "content_to_position=false,position_to_content=false"
    for options, reason in (("clip=0", "clip must be at least 1"), (neither, "no positions")):
        with pytest.raises(InvalidConfig, match=reason):
            variants.build(f"deberta[{options}]", dim=8, heads=2, regime="self")
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="deberta: relative positions need one sequence"):
            variants.build("deberta", dim=8, heads=2, regime=regime)
