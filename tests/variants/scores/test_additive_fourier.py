import math

import pytest
import torch

import variants
from bench.api import registry
from bench.api.call import Dims
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from variants.scores.additive_fourier import AMPLITUDES, ERRORS, FREQUENCIES

REACHES = (4, 8, 16)


def energy_of(score, query, source, ask):
    parts = {"score": score.prepare(source)}
    return score.energy(ask(query, source, parts=parts), None)


def pair(component, reach, width=4):
    """The approximation and the additive score with the same parameters."""
    fourier = component("score", f"additive_fourier[width={width},reach={reach}]")
    additive = component("score", f"additive[width={width}]", seed=1)
    fourier.load_state_dict(additive.state_dict())
    return fourier, additive


def one_unit(component, reach):
    """q, k -> energy with every map one: the sum of sines itself, clipped."""
    score = component(
        "score", f"additive_fourier[width=1,reach={reach}]", heads=1, widths=(1, 1, 1)
    )
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.fill_(1.0)
        score.bias.zero_()
    return score


@pytest.mark.parametrize("reach", REACHES)
def test_the_sum_of_sines_is_as_near_to_tanh_as_it_says(reach):
    worst = 0.0
    for step in range(40001):
        x = reach * (step / 20000 - 1)
        terms = zip(AMPLITUDES[reach], FREQUENCIES[reach], strict=True)
        found = sum(c * math.sin(w * x) for c, w in terms)
        worst = max(worst, abs(found - math.tanh(x)))
    assert 0.9 * ERRORS[reach] < worst <= ERRORS[reach]


@pytest.mark.parametrize("reach", REACHES)
def test_within_reach_an_energy_is_off_by_the_bound_times_the_sum_of_v(component, ask, draw, reach):
    drawn = draw(3, 2, 20, 20, lengths=())
    fourier, additive = pair(component, reach, 8)
    with torch.no_grad():  # the largest pre-activation is half the reach
        for score in (fourier, additive):
            query, key = drawn.query @ score.query_map, drawn.source.key @ score.key_map
            score.query_map.mul_(reach / 2 / query.abs().max())
            score.key_map.mul_(reach / 2 / (key + score.bias).abs().max())
            score.bias.mul_(reach / 2 / (key + score.bias).abs().max())
    gap = energy_of(fourier, *drawn[:2], ask) - energy_of(additive, *drawn[:2], ask)
    bound = ERRORS[reach] * additive.v.detach().abs().sum((1, 2)).view(1, -1, 1, 1)
    assert (gap.abs() <= bound).all()
    assert gap.abs().max() > bound.min() / 100, "nothing was approximated"


@pytest.mark.parametrize("reach", REACHES)
def test_beyond_the_reach_it_saturates_and_never_turns_back(component, ask, draw, reach):
    score = one_unit(component, reach)
    grid = torch.linspace(-5 * reach, 5 * reach, 201, dtype=torch.float64).view(1, 1, -1, 1)
    source = draw(1, 1, 1, 201, (1, 1, 1), lengths=()).source
    energy = energy_of(score, grid, type(source)(grid, grid), ask)[0, 0]
    half = reach / 2
    clipped = grid.flatten().clamp(-half, half)
    wanted = torch.tanh(clipped[:, None] + clipped)
    assert (energy - wanted).abs().max() <= ERRORS[reach]
    for axis in (0, 1):
        assert (energy.diff(dim=axis) > -2 * ERRORS[reach]).all()


def test_where_both_are_clipped_it_is_not_the_additive_score(component, ask, draw):
    """What the approximation gives up: q = 6, k = -4 is tanh(0) instead of tanh(2)."""
    score = one_unit(component, 8)
    query = torch.full((1, 1, 1, 1), 6.0, dtype=torch.float64)
    source = draw(1, 1, 1, 1, (1, 1, 1), lengths=()).source
    energy = energy_of(score, query, type(source)(-4 * query / 6, query), ask)
    assert energy.item() == pytest.approx(0.0, abs=ERRORS[8])


@pytest.mark.parametrize("reach", REACHES)
def test_gradients_are_near_those_of_tanh(component, ask, draw, reach):
    drawn = draw(2, 2, 6, 6, lengths=())
    source = type(drawn.source)(0.2 * drawn.source.key, drawn.source.value)
    gradients = []
    for score in pair(component, reach):
        query = (0.2 * drawn.query).detach().requires_grad_()
        with torch.no_grad():  # nothing is clipped
            score.bias.mul_(0.2)
        energy = energy_of(score, query, source, ask)
        gradients.append(torch.autograd.grad(energy.sum(), query)[0])
    off = (gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max()
    assert 1e-6 < off < 0.05


def test_fused_attention_computes_it(answer, beneath, draw):
    drawn = draw(2, 2, 9, 9)
    fused = beneath("additive_fourier[width=4]", impl="sdpa", seed=3)
    eager = beneath("additive_fourier[width=4]", impl="eager", seed=3)
    state = fused.start(fused.prepare(drawn.source), like_of(drawn.query))
    found = fused.attend(drawn.query, fused.prepare(drawn.source), state, want_weights=False)
    wanted = answer(eager, drawn.query, drawn.source)
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)


def like_of(query):
    from bench.api.call import QueryShape

    rows, heads, _, width = query.shape
    return QueryShape(rows, heads, width, query.dtype, query.device)


def test_features_have_no_place_in_a_product():
    with pytest.raises(Refused, match="tu_coverage"):
        variants.build("additive_fourier[history=tu_coverage]", dim=8, heads=2, regime="cross")


@pytest.mark.parametrize(
    ("options", "words"), [("width=0", "at least 1, got 0"), ("reach=5", "4, 8 or 16, got 5")]
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InvalidConfig, match=words):
        registry.make(
            "score", parse(f"additive_fourier[{options}]"), Dims(1, 1, 2, 2, 2, 2, regime="cross")
        )
