import math
from functools import partial

import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

NEAR = {"rtol": 0, "atol": 1e-12}
OPTIONS = [
    "layout=interleaved",
    "layout=halves",
    "fraction=0.5",
    "fraction=0.6,layout=halves",
    "base=10.0",
    "scaling=linear,factor=8.0",
    "scaling=ntk,factor=8.0",
    "scaling=yarn,factor=8.0,original=64",
    "scaling=yarn,factor=4.0,original=1000,layout=halves",
]


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("options", OPTIONS)
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"rope[{options}]", regime, dim=12)


def test_heads_of_odd_width_and_other_scores_equal_the_loops(equals_oracle):
    equals_oracle("rope", "causal", dim=10)
    equals_oracle("scaled_dot[position=rope,score=additive[width=3]]", "self")


@pytest.fixture
def rope(component):
    """`rope(options, width)` -> the component; it has no parameters to draw."""

    def make(options="", width=8):
        return component("position", f"rope[{options}]", widths=(width, width, 4), regime="causal")

    return make


def at(position, vector, place):
    """One vector, as if it stood at a place."""
    return position.turn(vector.view(1, 1, 1, -1), torch.tensor([place])).flatten()


def normal(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_golden_a_pair_at_place_one_is_turned_by_one_radian(rope):
    vector = torch.tensor([1.0, 0.0], dtype=torch.float64)
    found = at(rope(width=2), vector, 1).tolist()
    assert found == pytest.approx([0.540302, 0.841471], abs=1e-6)


def test_golden_the_second_of_two_pairs_turns_a_hundred_times_slower(rope):
    vector = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    found = at(rope(width=4), vector, 100).tolist()
    wanted = [math.cos(100), math.sin(100), math.cos(1), math.sin(1)]
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_products_depend_on_the_distance_alone(rope, options):
    position, query, key = rope(options), normal(8, seed=1), normal(8, seed=2)
    for distance in (0, 1, 7, 300):
        products = [
            at(position, query, place + distance) @ at(position, key, place)
            for place in (0, 1, 17, 5000)
        ]
        assert max(products) - min(products) < 1e-10
    near, far = (at(position, query, place) @ key for place in (1, 2))
    assert abs(near - far) > 1e-3


@pytest.mark.parametrize("options", [o for o in OPTIONS if "yarn" not in o])
def test_lengths_stay_and_place_zero_changes_nothing(rope, options):
    position, vector = rope(options), normal(8)
    torch.testing.assert_close(at(position, vector, 0), vector, **NEAR)
    assert at(position, vector, 41).norm() == pytest.approx(vector.norm().item(), abs=1e-12)


def test_a_pair_is_a_complex_number_times_a_power_of_a_phase(rope):
    vector = normal(8)
    frequency = 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    phase = torch.polar(torch.ones_like(frequency), 37 * frequency)
    wanted = torch.view_as_real(torch.view_as_complex(vector.view(4, 2)) * phase).flatten()
    torch.testing.assert_close(at(rope(), vector, 37), wanted, **NEAR)


def test_the_two_layouts_differ_by_a_fixed_permutation(answer, beneath, draw):
    drawn = draw(2, 2, 9, 9, widths=(8, 8, 4))
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    moved = Source(drawn.source.key[..., order], drawn.source.value, drawn.source.mask)
    pair = [
        beneath(f"rope[layout={layout}]", widths=(8, 8, 4), regime="causal")
        for layout in ("interleaved", "halves")
    ]
    one = answer(pair[0], drawn.query, drawn.source).output
    torch.testing.assert_close(answer(pair[1], drawn.query[..., order], moved).output, one, **NEAR)
    mixed = answer(pair[1], drawn.query, drawn.source).output
    assert (mixed - one).abs().max() > 1e-3


def test_what_is_not_in_the_fraction_stays(rope):
    vector = normal(8)
    found = at(rope("fraction=0.5"), vector, 9)
    assert torch.equal(found[4:], vector[4:])
    torch.testing.assert_close(found[:4], at(rope(width=4), vector[:4], 9), **NEAR)


def test_position_interpolation_puts_more_places_between_those_of_training(rope):
    vector = normal(8)
    found = at(rope("scaling=linear,factor=4.0"), vector, 4 * 13)
    torch.testing.assert_close(found, at(rope(), vector, 13), **NEAR)


def test_ntk_keeps_the_fastest_pair_and_interpolates_the_slowest(rope):
    vector = normal(8)
    found = at(rope("scaling=ntk,factor=4.0"), vector, 4 * 13)
    torch.testing.assert_close(found[:2], at(rope(), vector, 4 * 13)[:2], **NEAR)
    torch.testing.assert_close(found[-2:], at(rope(), vector, 13)[-2:], **NEAR)


def test_ntk_is_a_greater_base(rope):
    base = 10000.0 * 4 ** (8 / 6)
    found = at(rope("scaling=ntk,factor=4.0"), normal(8), 11)
    torch.testing.assert_close(found, at(rope(f"base={base}"), normal(8), 11), **NEAR)


def test_yarn_keeps_fast_pairs_and_interpolates_slow_ones(rope):
    """A length of 1,000 is 159 turns of the first pair, 16 of the second and less than one of the
    last; products of queries and keys are sharpened by the square of 0.1 ln 4 + 1."""
    position, vector = rope("scaling=yarn,factor=4.0,original=1000"), normal(8)
    sharper = 0.1 * math.log(4) + 1
    found = at(position, vector, 4 * 13) / sharper
    torch.testing.assert_close(found[:2], at(rope(), vector, 4 * 13)[:2], **NEAR)
    torch.testing.assert_close(found[-2:], at(rope(), vector, 13)[-2:], **NEAR)
    turns = 1000 * 0.1 / (2 * math.pi)
    share = (turns - 1) / 31
    angle = 52 * 0.1 * (share + (1 - share) / 4)
    wanted = vector[2] * math.cos(angle) - vector[3] * math.sin(angle)
    assert found[2].item() == pytest.approx(wanted.item(), abs=1e-12)


@pytest.mark.parametrize("share", ["1.0", "0.5"])
def test_yarn_sharpens_every_energy_of_heads_alike(answer, beneath, draw, share):
    """(0.1 ln s + 1)^2 at place 0, of numbers that would turn further on and of others."""
    drawn = draw(1, 2, 1, 1, widths=(8, 8, 4), lengths=())
    options = f"fraction={share},factor=16.0"
    energies = []
    for scaling in ("none", "yarn"):
        selector = f"scaled_dot[position=rope[{options},scaling={scaling}],normalizer=none]"
        variant = beneath(selector, widths=(8, 8, 4), regime="causal")
        energies.append(answer(variant, drawn.query, drawn.source).weights)
    wanted = (0.1 * math.log(16) + 1) ** 2 * energies[0]
    torch.testing.assert_close(energies[1], wanted, **NEAR)


def test_yarn_is_refused_where_heads_keep_a_part_from_being_turned():
    build = partial(variants.build, dim=16, regime="causal")
    for scaling in ("none", "linear", "ntk"):
        build(f"mla[position=rope[scaling={scaling}]]")
    with pytest.raises(Refused, match="hand it the turned part alone"):
        build("mla[position=rope[scaling=yarn]]")


@pytest.mark.parametrize("scaling", ["linear", "ntk", "yarn"])
def test_no_scaling_changes_anything_for_sequences_as_long_as_in_training(rope, scaling):
    found = at(rope(f"scaling={scaling},factor=1.0,original=16"), normal(8), 11)
    torch.testing.assert_close(found, at(rope(), normal(8), 11), **NEAR)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_angles_far_into_a_long_sequence_are_exact(rope, dtype):
    vector = normal(8).to(dtype)
    found = at(rope(), vector, 1_000_003).double()
    wanted = rope().oracle_turn(vector.double(), 1_000_003)
    # two products, a sum and a sine are rounded; numbers are smaller than 4
    assert (found - wanted).abs().max() < 4 * torch.finfo(dtype).eps


def test_the_cache_holds_keys_that_are_turned_already(beneath, draw):
    drawn = draw(1, 2, 4, 4, widths=(6, 6, 4), lengths=())
    variant = beneath("rope", widths=(6, 6, 4), regime="causal")
    state = variant.start(None, QueryShape(1, 2, 6, torch.float64, torch.device("cpu")))
    key, value = drawn.source.key, drawn.source.value
    for at_once in (slice(0, 3), slice(3, 4)):
        new = Source(key[:, :, at_once], value[:, :, at_once])
        state = variant.attend(drawn.query[:, :, at_once], None, state, new=new).state
    wanted = variant.positions[0].turn(key, torch.arange(4))
    torch.testing.assert_close(state.cache.source.key, wanted, **NEAR)


def test_fused_code_computes_the_same(answer, beneath, draw):
    drawn = draw(2, 2, 9, 9, widths=(6, 6, 6), lengths=())
    variant = beneath("rope", widths=(6, 6, 6), regime="causal")
    eager, fused = (
        answer(variant, drawn.query, drawn.source, want_weights=wanted).output
        for wanted in (True, False)
    )
    torch.testing.assert_close(fused, eager, **NEAR)


def test_options_and_places_without_a_meaning_are_refused():
    for options, reason in (
        ("base=1.0", "base must be above 1"),
        ("fraction=0.0", "fraction in"),
        ("factor=0.5", "factor and original must be at least 1"),
        ("fraction=0.25", "no pair to turn"),
    ):
        with pytest.raises(InvalidConfig, match=reason):
            variants.build(f"rope[{options}]", dim=8, heads=2, regime="causal")
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="rope: places on one circle need one sequence"):
            variants.build("rope", dim=8, heads=2, regime=regime)
