import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variants
from bench.api.errors import InvalidConfig
from variants.heads.query_key_norm import RmsNorm, UnitNorm

variants.load_all()
DIM, HEADS = 12, 4
WIDTH = DIM // HEADS


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def logits(attention, x):
    """Energies of a scaled dot product, as the score makes them."""
    query, key = attention.heads.query(x), attention.heads.source(x, None, None).key
    return query @ key.transpose(-1, -2) / math.sqrt(WIDTH)


@pytest.mark.parametrize("norm", ["rms", "l2"])
@pytest.mark.parametrize("scaled", ["to_query", "to_key"])
def test_the_size_of_queries_and_keys_does_not_matter(norm, scaled):
    attention = built(f"qk_norm[norm={norm}]")
    x = drawn(2, 7, DIM)
    before = attention(x)
    with torch.no_grad():
        getattr(attention.heads, scaled).weight.mul_(100)
    torch.testing.assert_close(attention(x), before, rtol=1e-4, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.floats(0.01, 1000.0))
def test_energies_of_unit_vectors_are_cosines_times_the_scale(length, size):
    attention = built("qk_norm[norm=l2,length=64]")
    found = logits(attention, size * drawn(2, length, DIM))
    scale = float(attention.heads.norm.scale.detach())
    assert bool((found.abs() <= scale + 1e-6).all())
    own = attention.heads
    key = own.to_query(drawn(2, length, DIM)).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    normed = own.norm.query(key) / math.sqrt(WIDTH) @ own.norm.key(key).transpose(-1, -2)
    same = normed.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(same, torch.full_like(same, scale))


def test_energies_under_the_root_mean_square_are_at_most_the_root_of_the_width():
    found = logits(built("qk_norm"), 1000 * drawn(2, 50, DIM))
    assert float(found.detach().abs().max()) <= math.sqrt(WIDTH) + 1e-6


@pytest.mark.parametrize(("length", "start"), [(2, 1.0), (64, 11.97728), (512, 17.99718)])
def test_the_scale_starts_at_the_number_of_pairs_in_bits(length, start):
    attention = built(f"qk_norm[norm=l2,length={length}]")
    assert float(attention.heads.norm.scale.detach()) == pytest.approx(start, abs=1e-5)
    assert attention.heads.norm.starts["scale"] == pytest.approx(start, abs=1e-5)


def test_the_root_mean_square_is_that_of_pytorch():
    norm, x = RmsNorm(WIDTH).double(), drawn(2, HEADS, 7, WIDTH)
    with torch.no_grad():
        norm.key_gain.copy_(drawn(WIDTH))
    wanted = torch.nn.RMSNorm(WIDTH, eps=1e-6).double()
    torch.testing.assert_close(norm.query(x), wanted(x))
    torch.testing.assert_close(norm.key(x), wanted(x) * norm.key_gain)


@pytest.mark.parametrize("norm", [RmsNorm(WIDTH), UnitNorm(WIDTH, 8)])
def test_a_vector_of_zeros_stays_zero_with_finite_gradients(norm):
    x = torch.zeros(1, 1, 2, WIDTH, requires_grad=True)
    found = norm.query(x) + norm.key(x)
    assert not found.any()
    found.sum().backward()
    assert x.grad.isfinite().all()


def test_a_sequence_of_one_token_has_no_scale_to_start_from():
    with pytest.raises(InvalidConfig, match="at least 2"):
        built("qk_norm[norm=l2,length=1]")
    with pytest.raises(InvalidConfig, match="heads must divide"):
        built("qk_norm[heads=5]")
