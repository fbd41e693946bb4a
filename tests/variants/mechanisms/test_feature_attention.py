"""What mechanisms that map queries and keys to features have in common."""

from dataclasses import replace

import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.source import Source

NAMES = ("linear_attention", "performer", "cosformer", "dpfp", "based", "hedgehog")
PLACES = [(name, regime) for name in NAMES for regime in ("causal", "self", "cross")]
PLACES.remove(("cosformer", "cross"))
"""Mechanisms and where they stand."""
HALVES = (torch.bfloat16, torch.float16)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_the_matrix_equals_weights_written_out(beneath, answer, draw, name, regime):
    drawn = draw(2, 2, 70, 70, lengths=())
    variant = beneath(name, regime=regime)
    place = torch.arange(70)
    query = variant.of_queries(drawn.query, place)
    weights = query @ variant.of_keys(drawn.source.key, place).mT
    weights = weights.tril() if regime == "causal" else weights
    expected = weights @ drawn.source.value / (weights.sum(-1, keepdim=True) + variant.eps)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_not_negative(beneath, draw, name):
    drawn = draw(2, 2, 30, 30, lengths=())
    variant = beneath(name, regime="self")
    place = torch.arange(30)
    weights = variant.of_queries(drawn.query, place) @ variant.of_keys(drawn.source.key, place).mT
    assert weights.min() >= -1e-12


@pytest.mark.parametrize("name", NAMES)
def test_the_state_has_one_row_for_each_feature_and_stays_in_float32(name):
    slot = variants.build(name, dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    matrix, normalizer = (found.state.carried[name] for name in ("matrix", "normalizer"))
    assert matrix.dtype == normalizer.dtype == torch.float32
    assert matrix.shape == (1, 2, slot.variant.num_maps, 4)
    assert found.state.cache is None


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("name", "regime"), PLACES)
def test_sums_are_exact_where_networks_are_trained_in_half_precision(
    beneath, draw, answer, name, regime, dtype
):
    """Autocast takes products in half precision, and sums over keys leave the range of float16."""
    drawn = draw(2, 2, 1024, 1024, (5, 5, 5), lengths=[1024, 1000])
    variant = beneath(name, widths=(5, 5, 5), regime=regime).float()
    query, key, value = (
        x.float() for x in (4 * drawn.query, 4 * drawn.source.key, 100 * drawn.source.value)
    )
    source = Source(key, value, drawn.source.mask)
    wanted = answer(variant, query, source).output
    with torch.autocast("cpu", dtype):
        found = answer(variant, query, source).output
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_a_row_without_any_key_is_zero_where_networks_are_trained_in_half_precision(
    beneath, draw, answer, name, regime
):
    """The least number that is added to a sum of weights is zero in float16."""
    drawn = draw(2, 2, 6, 6, lengths=[6, 0])
    variant = beneath(name, regime=regime).float()
    source = replace(drawn.source, key=drawn.source.key.float(), value=drawn.source.value.float())
    with torch.autocast("cpu", torch.float16):
        found = answer(variant, drawn.query.float(), source).output
    assert found[0].isfinite().all()
    assert (found[1] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_other_implementations_are_refused(name):
    with pytest.raises(Refused, match=f"{name} has no impl=sdpa; use auto or eager"):
        variants.build(name, dim=8, heads=2, regime="causal", impl="sdpa")
