import math

import pytest
import torch

import variants
from bench.api.call import Call
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Memory, Source


def with_center(mask, share):
    """Make the center `share` of the length for the query (1, 0, ...)."""
    with torch.no_grad():
        mask.query_map.zero_()
        mask.query_map[:, 0, 0] = 1.0
        mask.v.zero_()
        mask.v[:, 0, 0] = math.log(share / (1 - share)) / math.tanh(1.0)


def unit_query(queries=1, heads=1, width=2):
    query = torch.zeros(1, heads, queries, width, dtype=torch.float64)
    query[..., 0] = 1.0
    return query


def zeros(keys, heads=1, width=2):
    return Source(*[torch.zeros(1, heads, keys, width, dtype=torch.float64)] * 2)


def test_the_published_window_and_other_scores_equal_the_loops(equals_oracle):
    equals_oracle("luong_local_p", heads=None, dim=4, source_dim=6, keys=30, queries=3)
    equals_oracle("luong_local_p[window=1,score=additive[width=3]]")


def test_half_precision_counts_places_exactly(beneath):
    """From place 256 on, bfloat16 knows even places alone."""
    variant = beneath("luong_local_p[window=10]", heads=1, widths=(2, 2, 2)).bfloat16()
    with_center(variant.mask, 0.5)
    query = unit_query().bfloat16()
    source = Source(*[torch.zeros(1, 1, 600, 2, dtype=torch.bfloat16)] * 2)
    call = Call(query, Memory(source), 0, causal=False)
    center = float(variant.mask.center(call).detach())
    assert center == pytest.approx(300, abs=1.5)
    allowed, log_post_weight = variant.mask.window(call)
    seen = allowed.flatten().nonzero().flatten()
    assert seen.tolist() == [s for s in range(600) if abs(s - center) <= 10]
    found = log_post_weight.flatten()[seen].float()
    torch.testing.assert_close(found, -((seen - center) ** 2) / 50, rtol=0.01, atol=0.001)


def test_golden_weights_around_a_center_between_keys(beneath, answer):
    variant = beneath("luong_local_p[window=2]", heads=1, widths=(2, 2, 2))
    with_center(variant.mask, 3.25 / 7)
    found = answer(variant, unit_query(), zeros(7)).weights.flatten()
    expected = [0, 0, 0.114458, 0.242308, 0.188710, 0.054066, 0]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    assert found.sum().item() == pytest.approx(0.599543, abs=1e-6)


def test_weights_sum_to_less_than_one_and_lie_in_the_window(equals_oracle):
    found = equals_oracle("luong_local_p[window=2]")
    weights = found.parallel.weights
    assert (weights.sum(-1) < 1).all()
    assert ((weights > 0).sum(-1) <= 5).all()


def test_the_center_is_a_share_of_the_true_length(component, ask):
    mask = component("mask", "luong_local_p", heads=1, widths=(2, 2, 2))
    with_center(mask, 0.25)
    source = zeros(12)
    padded = Source(source.key, source.value, torch.arange(12)[None] < 8)
    assert mask.center(ask(unit_query(), source)).item() == pytest.approx(3)
    assert mask.center(ask(unit_query(), padded)).item() == pytest.approx(2)
    hidden = Source(source.key, source.value, torch.arange(12)[None] % 8 == 7)
    assert mask.center(ask(unit_query(), hidden)).item() == pytest.approx(2)


def test_a_step_up_the_gradient_of_a_key_moves_the_center_towards_it(component, ask):
    mask = component("mask", "luong_local_p[window=4]", heads=1, widths=(2, 2, 2))
    for target, sign in ((2, -1), (6, 1)):
        with_center(mask, 0.5)
        call = ask(unit_query(), zeros(8))
        before = mask.center(call).item()
        mask.zero_grad()
        mask.window(call)[1][0, 0, 0, target].backward()
        with torch.no_grad():
            mask.v += 0.01 * mask.v.grad
        assert math.copysign(1, mask.center(call).item() - before) == sign


def test_a_window_wider_than_the_source_is_global_attention_times_the_gaussian(
    answer, beneath, ask, draw
):
    drawn = draw(lengths=())
    local = beneath("luong_local_p[window=50]")
    found = answer(local, drawn.query, drawn.source).weights
    plain = beneath("general")
    plain.score.load_state_dict(local.score.state_dict())
    weights = answer(plain, drawn.query, drawn.source).weights
    center = local.mask.center(ask(drawn.query, drawn.source))
    gauss = torch.exp(-((torch.arange(6) - center) ** 2) / (2 * 25**2))
    torch.testing.assert_close(found, weights * gauss, rtol=0, atol=1e-12)


def test_a_very_wide_window_is_global_attention(beneath, answer, draw):
    drawn = draw()
    local, plain = beneath("luong_local_p[window=1000000]"), beneath("general")
    plain.score.load_state_dict(local.score.state_dict())
    found = answer(local, drawn.query, drawn.source).output
    expected = answer(plain, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_a_window_is_never_empty_even_at_the_ends(beneath, answer):
    variant = beneath("luong_local_p[window=1]", heads=1, widths=(2, 2, 2))
    for share in (1e-12, 1 - 1e-12):
        with_center(variant.mask, share)
        found = answer(variant, unit_query(), zeros(5)).weights
        assert found.sum() > 0.01


def test_unknown_lengths_pooling_and_empty_windows_are_refused():
    with pytest.raises(Refused, match="the center is a share of the source's length"):
        variants.build("luong_local_p", dim=8, heads=2, regime="causal")
    with pytest.raises(Refused, match="pooling has only one"):
        variants.build("luong_local_p", dim=8, heads=2, regime="pool")
    with pytest.raises(InvalidConfig, match="window must be at least 1, got 0"):
        variants.build("luong_local_p[window=0]", dim=8, heads=2, regime="cross")
