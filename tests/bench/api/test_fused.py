"""Fused softmax: grouped keys, values of other widths, and what it must not hold in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.api.fused import fused_softmax, read_by_products
from bench.timing.memory import TensorBytes


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def by_definition(query, key, value, mask, scale):
    """One head and one query after the other."""
    rows, heads, length, _ = query.shape
    read = query.new_zeros(rows, heads, length, value.shape[3])
    for b in range(rows):
        for h in range(heads):
            k = key[b, h * key.shape[1] // heads]
            v = value[b, h * value.shape[1] // heads]
            for i in range(length):
                energy = k @ query[b, h, i] * scale
                shown = mask[b % mask.shape[0], h % mask.shape[1], i]
                seen = shown if shown.dtype == torch.bool else torch.ones_like(shown).bool()
                energy = energy if shown.dtype == torch.bool else energy + shown
                read[b, h, i] = torch.softmax(energy[seen], 0) @ v[seen]
    return read


@st.composite
def cases(draw):
    groups, shared = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows, length, keys = (draw(st.integers(1, 4)) for _ in range(3))
    widths = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    heads = groups * shared
    seen = (draw(st.sampled_from((1, rows))), draw(st.sampled_from((1, heads))), length, keys)
    return rows, heads, groups, length, keys, widths, seen, draw(st.booleans())


@settings(deadline=None)
@given(cases())
def test_it_is_softmax_attention_over_the_keys_of_its_head(case):
    rows, heads, groups, length, keys, (width, wide), seen, added = case
    query, key = drawn(rows, heads, length, width), drawn(rows, groups, keys, width, seed=1)
    value = drawn(rows, groups, keys, wide, seed=2)
    mask = drawn(*seen, seed=3) if added else drawn(*seen, seed=3) > 0
    if not added:
        mask[..., 0] = True
    found = fused_softmax(query, key, value, mask=mask, causal=False, scale=0.7)
    torch.testing.assert_close(found, by_definition(query, key, value, mask, 0.7))


@pytest.mark.parametrize(("width", "wide"), [(8, 8), (9, 4), (4, 9)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_causal_queries_see_no_later_key(groups, width, wide):
    query, key = drawn(2, 4, 6, width), drawn(2, groups, 6, width, seed=1)
    value = drawn(2, groups, 6, wide, seed=2)
    past = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    found = fused_softmax(query, key, value, mask=None, causal=True, scale=0.7)
    torch.testing.assert_close(found, by_definition(query, key, value, past, 0.7))


@settings(deadline=None)
@given(cases())
def test_products_read_what_the_kernels_read(case):
    rows, heads, _, length, keys, (width, wide), seen, added = case
    query, key = drawn(rows, heads, length, width), drawn(rows, heads, keys, width, seed=1)
    value = drawn(rows, heads, keys, wide, seed=2)
    mask = drawn(*seen, seed=3) if added else drawn(*seen, seed=3) > 0
    for shown in (mask, None):
        found = read_by_products(query, key, value, mask=shown, scale=0.7)
        other = fused_softmax(query, key, value, mask=shown, causal=False, scale=0.7)
        torch.testing.assert_close(found, other)


@pytest.mark.parametrize("added", [False, True])
def test_a_row_that_sees_no_key_reads_zero_and_has_no_gradient(added):
    query, key = (drawn(2, 3, n, 4, seed=n).requires_grad_() for n in (1, 5))
    seen = torch.tensor([True, False])[:, None, None, None].expand(2, 1, 1, 5)
    mask = torch.where(seen, 0.0, -torch.inf).to(query) if added else seen
    read = read_by_products(query, key, key, mask=mask, scale=0.5)
    assert not read[1].any()
    read.sum().backward()
    assert query.grad[0].any()
    assert not query.grad[1].any()
    assert not key.grad[1].any()


def test_products_keep_energies_of_half_precision_in_float32():
    query, key = (drawn(1, 1, n, 288, seed=n).bfloat16() for n in (8, 300))
    exact = by_definition(*(x.double() for x in (query, key, key)), torch.ones(1, 1, 8, 300) > 0, 1)
    found = read_by_products(query, key, key, mask=None, scale=1.0)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=0.02)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_keep_energies_in_float32_under_autocast(dtype, compiled):
    """The energies here have a spread of 17, which bfloat16 rounds by up to 0.06."""
    query, key = (drawn(1, 1, n, 288, seed=n).to(dtype) for n in (8, 300))
    exact = by_definition(*(x.double() for x in (query, key, key)), torch.ones(1, 1, 8, 300) > 0, 1)
    read = read_by_products
    if compiled:
        torch.compiler.reset()
        read = torch.compile(read, backend="eager", fullgraph=True)
    alone = read(query, key, key, mask=None, scale=1.0)
    with torch.autocast("cpu", torch.bfloat16):
        found = read(query, key, key, mask=None, scale=1.0)
        kernel = fused_softmax(query, key, key, mask=None, causal=False, scale=1.0)
        assert torch.is_autocast_enabled("cpu")
    assert found.dtype == kernel.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=0.02)
    assert torch.equal(alone, read(query, key, key, mask=None, scale=1.0)), "it ends with the block"


def test_products_know_the_shape_of_what_they_read_without_numbers():
    query, key = (drawn(2, 3, n, 4).to("meta") for n in (1, 5))
    assert read_by_products(query, key, key, mask=None, scale=1.0).shape == (2, 3, 1, 4)


def peak(function):
    with torch.no_grad(), TensorBytes() as held:
        function()
    return held.peak


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_single_query_copies_no_key(groups):
    keys, width = 512, 32
    query, key = drawn(1, 8, 1, width), drawn(1, groups, keys, width, seed=1)
    used = peak(lambda: fused_softmax(query, key, key, mask=None, causal=False, scale=1.0))
    assert used < key.numel() * key.element_size() / 2


@pytest.mark.parametrize(("width", "wide"), [(16, 16), (24, 16), (16, 24)])
def test_no_matrix_of_energies_is_held_whatever_the_widths(width, wide):
    keys = 512
    query, key = drawn(1, 2, keys, width), drawn(1, 2, keys, width, seed=1)
    value = drawn(1, 2, keys, wide, seed=2)
    used = peak(lambda: fused_softmax(query, key, value, mask=None, causal=True, scale=1.0))
    assert used < 2 * keys * keys * query.element_size() / 2
