import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", ["buckets=32", "buckets=8,far=16", "buckets=4,far=5"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"t5_bias[{options}]", regime, keys=9)


@pytest.fixture
def buckets(component, ask, draw):
    """`buckets(regime, distances)` -> the bucket of each, read off a table of its own numbers."""

    def read(regime, distances):
        position = component("position", "t5_bias", heads=1, regime=regime)
        with torch.no_grad():
            position.table.copy_(torch.arange(32))
        drawn = draw(1, 1, 401, 401, lengths=())
        row = position.energy(ask(drawn.query, drawn.source))[0, 0, 200]
        return [int(row[200 + distance]) for distance in distances]

    return read


def test_golden_buckets_in_both_directions(buckets):
    distances = [-200, -64, -20, -10, -8, -1, 0, 1, 8, 20, 64, 200]
    wanted = [15, 14, 10, 8, 8, 1, 0, 17, 24, 26, 30, 31]
    assert buckets("self", distances) == wanted


def test_golden_buckets_under_causality(buckets):
    assert buckets("causal", [-5, -16, -20, -64, -128, -200]) == [5, 16, 17, 26, 31, 31]
    assert buckets("causal", [0, -15, 3]) == [0, 15, 0]


def test_buckets_grow_with_the_distance_and_leave_none_out(buckets):
    found = buckets("causal", range(0, -200, -1))
    assert found == sorted(found)
    assert set(found) == set(range(32))


def test_with_a_table_of_zeros_it_is_the_scaled_dot_product(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("t5_bias", regime="self")
    with torch.no_grad():
        variant.positions[0].table.zero_()
    plain = beneath("scaled_dot", regime="self")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_near_distances_have_numbers_of_their_own_as_in_the_distance_bias(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("t5_bias", regime="causal")
    other = beneath("scaled_dot[position=distance_bias]", regime="causal")
    table, numbers = variant.positions[0].table, other.positions[0].table
    with torch.no_grad():
        numbers[:, 11:17] = table[:, :6]
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, other)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_sizes_and_places_without_a_meaning_are_refused():
    for options, reason in (
        ("buckets=6", "multiple of 4"),
        ("buckets=32,far=16", "more than half"),
    ):
        with pytest.raises(InvalidConfig, match=reason):
            variants.build(f"t5_bias[{options}]", dim=8, heads=2, regime="self")
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="t5_bias: distances need one sequence"):
            variants.build("t5_bias", dim=8, heads=2, regime=regime)
