import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source
from bench.conformance import certify
from variants.mechanisms.differential import DifferentialConfig


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("norm", ["true", "false"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, norm):
    equals_oracle(f"differential[norm={norm}]", regime)
    equals_oracle(f"differential[norm={norm},start=0.3]", regime, padded=False)


def without_lambda(variant):
    """lambda = exp(0) - exp(0) + start."""
    with torch.no_grad():
        variant.added.zero_()
        variant.taken.zero_()
    return variant


def test_without_the_second_map_it_is_attention_of_the_first_half(beneath, answer, draw):
    drawn = draw(widths=(6, 6, 4))
    variant = without_lambda(beneath("differential[start=0,norm=false]", widths=(6, 6, 4)))
    found = answer(variant, drawn.query, drawn.source)
    half = Source(drawn.source.key[..., :3], drawn.source.value, drawn.source.mask)
    wanted = answer(beneath("scaled_dot", widths=(3, 3, 4)), drawn.query[..., :3], half)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)


def test_two_equal_maps_leave_one_less_lambda_of_one(beneath, answer, draw):
    drawn = draw(widths=(3, 3, 4))
    doubled = Source(drawn.source.key.repeat(1, 1, 1, 2), drawn.source.value, drawn.source.mask)
    variant = without_lambda(beneath("differential[start=0.8,norm=false]", widths=(6, 6, 4)))
    found = answer(variant, drawn.query.repeat(1, 1, 1, 2), doubled).output
    wanted = answer(beneath("scaled_dot", widths=(3, 3, 4)), drawn.query, drawn.source).output
    torch.testing.assert_close(found, 0.2 * wanted, rtol=0, atol=1e-12)


def test_equal_maps_under_lambda_one_are_nothing(beneath, answer, draw):
    drawn = draw(widths=(3, 3, 4))
    doubled = Source(drawn.source.key.repeat(1, 1, 1, 2), drawn.source.value, drawn.source.mask)
    variant = without_lambda(beneath("differential[start=0,norm=false]", widths=(6, 6, 4)))
    with torch.no_grad():  # exp(log 2) - exp(0) = 1
        variant.added[:, 0] = torch.tensor(2.0, dtype=torch.float64).log().sqrt()
    found = answer(variant, drawn.query.repeat(1, 1, 1, 2), doubled).output
    torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-12)


def test_rows_sum_to_one_less_lambda_and_hold_both_signs(beneath, answer, draw):
    drawn = draw()
    variant = beneath("differential")
    weights = answer(variant, drawn.query, drawn.source).weights
    wanted = (1 - variant.share()).expand(3, 2, 4)
    torch.testing.assert_close(weights.sum(-1), wanted, rtol=0, atol=1e-12)
    assert (weights < 0).any()
    assert (weights > 0).any()


def test_the_norm_gives_every_output_the_same_root_mean_square(beneath, answer, draw):
    drawn = draw()
    variant = beneath("differential[start=0.8]", seed=None)
    found = answer(variant, drawn.query, drawn.source).output
    root = found.square().mean(-1).sqrt()
    torch.testing.assert_close(root, torch.full_like(root, 0.2), rtol=0, atol=0.01)


def test_lambda_starts_near_what_was_asked_for():
    torch.manual_seed(0)
    built = [variants.build("differential", dim=64, heads=2).variant for _ in range(20)]
    starts = [float(variant.share().detach()) for variant in built]
    assert all(abs(start - 0.8) < 0.3 for start in starts)
    assert len(set(starts)) == 20


@pytest.mark.parametrize(("layer", "start"), [(0, 0.2), (1, 0.8 - 0.6 * 0.7408182206817179)])
def test_lambda_may_start_higher_in_higher_layers(layer, start):
    part = variants.build("differential[by_layer=true]", dim=64, heads=2).variant
    assert part.begin == pytest.approx(0.2)  # without any below it is the lowest
    built = type(part)(DifferentialConfig(by_layer=True), part.dims._replace(layer=layer))
    above = variants.build("differential[by_layer=true]", dim=64, heads=2, layers_below=layer)
    assert built.begin == above.variant.begin == pytest.approx(start)


def test_the_certificate_holds_what_rows_sum_to():
    assert "weight_law" in certify("differential", checks=["weight_law"]).passed


@pytest.mark.parametrize("want_weights", [False, True])  # fused code, and code of its own
@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
@pytest.mark.parametrize("width", [4, 5, 7])
def test_every_unit_of_queries_and_keys_takes_part(width, position, want_weights):
    torch.manual_seed(0)
    attention = variants.build(f"differential[position={position}]", dim=2 * width, heads=2)
    x = torch.randn(2, 5, 2 * width)
    found = attention.answer_all(x, x, want_weights=want_weights)[0]
    found.square().sum().backward()
    for made in (attention.heads.to_query, attention.heads.to_key):
        assert (made.weight.grad.abs().sum(1) > 1e-6).all()


def test_the_last_unit_of_an_odd_width_is_in_both_maps(beneath, answer, draw):
    """As if it stood twice, which every head of even width may do."""
    drawn = draw(widths=(5, 5, 4))
    twice = [0, 1, 4, 2, 3, 4]
    odd, even = (beneath("differential", widths=(width, width, 4)) for width in (5, 6))
    with torch.no_grad():
        for name in ("added", "taken"):
            getattr(even, name).zero_()[:, :2] = getattr(odd, name)
        even.gain.copy_(odd.gain)
    source = Source(drawn.source.key[..., twice], drawn.source.value, drawn.source.mask)
    for want_weights in (False, True):
        wanted = answer(odd, drawn.query, drawn.source, want_weights=want_weights).output
        found = answer(even, drawn.query[..., twice], source, want_weights=want_weights).output
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("position", ["none", "rope", "deberta"])
def test_loops_agree_at_an_odd_width(equals_oracle, regime, position):
    equals_oracle(f"differential[position={position}]", regime, dim=10)


def test_heads_too_narrow_other_code_and_a_lambda_of_one_are_refused():
    with pytest.raises(Refused, match="width 2 or more"):
        variants.build("differential", dim=2, heads=2, regime="self")
    with pytest.raises(Refused, match="differential has no impl=sdpa"):
        variants.build("differential", dim=8, heads=2, impl="sdpa")
    with pytest.raises(InvalidConfig, match="leave start out"):
        variants.build("differential[by_layer=true,start=0.5]", dim=8, heads=2)
    with pytest.raises(InvalidConfig, match=r"below 1, got 1\.0"):
        variants.build("differential[start=1.0]", dim=8, heads=2)
