import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

NEAR = {"rtol": 0, "atol": 1e-10}


@pytest.mark.parametrize("options", ["gamma=0.4", "gamma=0.1,scale_base=16"])
@pytest.mark.parametrize("dim", [8, 10])
def test_vectorized_code_equals_the_loops(equals_oracle, options, dim):
    equals_oracle(f"xpos[{options}]", "causal", dim=dim)


@pytest.fixture
def product(component):
    """`product(query, key, i, j)` -> what a score sees of a query at i and a key at j."""

    def make(query, key, i, j, options=""):
        width = len(query)
        position = component(
            "position", f"xpos[{options}]", widths=(width, width, 4), regime="causal"
        )
        turned = position.turn(query.view(1, 1, 1, -1), torch.tensor([i])).flatten()
        return turned @ position.turn_keys(key.view(1, 1, 1, -1), torch.tensor([j])).flatten()

    return make


def test_golden_products_of_two_pairs_at_distance_512(product):
    """The first pair keeps 0.4 / 1.4 of its product, the second (1/2 + 0.4) / 1.4."""
    one = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    two = torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    first = product(one, one, 600, 88)
    second = product(two, two, 600, 88)
    assert first.item() == pytest.approx(0.285714 * math.cos(512), abs=1e-6)
    assert second.item() == pytest.approx(0.642857 * math.cos(5.12), abs=1e-6)


def test_products_depend_on_the_distance_alone(product, draw):
    query, key = draw(widths=(6, 6, 4)).query[0, 0, :2]
    for distance in (0, 1, 90):
        found = [product(query, key, place + distance, place) for place in (0, 5, 700)]
        assert max(found) - min(found) < 1e-10


def test_fast_pairs_shrink_more_than_slow_ones(product):
    kept = []
    for pair in range(4):
        for one in (0, 1):
            unit = torch.zeros(8, dtype=torch.float64)
            unit[2 * pair + one] = 1
            other = torch.zeros(8, dtype=torch.float64)
            other[2 * pair + 1 - one] = 1
            same, across = product(unit, unit, 300, 0), product(unit, other, 300, 0)
            kept.append(math.hypot(same, across))
    assert kept[::2] == pytest.approx(kept[1::2])
    assert kept == sorted(kept)
    assert kept[-1] < 1


def test_where_nothing_shrinks_it_is_rotary_positions(answer, beneath, draw):
    drawn = draw(2, 2, 9, 9)
    variant = beneath("xpos[gamma=1e14]", regime="causal")
    rope = beneath("rope", regime="causal")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, rope)]
    torch.testing.assert_close(*found, **NEAR)


def test_options_and_places_without_a_meaning_are_refused():
    for options in ("gamma=0.0", "scale_base=0"):
        with pytest.raises(InvalidConfig, match="gamma must be positive and scale_base at least 1"):
            variants.build(f"xpos[{options}]", dim=8, heads=2, regime="causal")
    with pytest.raises(InvalidConfig, match="no pair to turn"):
        variants.build("xpos", dim=2, heads=2, regime="causal")
    for regime, reason in (("cross", "two"), ("self", "towards the future"), ("pool", "not in it")):
        with pytest.raises(Refused, match=reason):
            variants.build("xpos", dim=8, heads=2, regime=regime)
