"""The two forms of a sum of tanh, in blocks, far out of range, in little memory."""

import pytest
import torch

from bench.timing.memory import peak_bytes
from variants.scores import pair_blocks
from variants.scores.tanh_sum import tanh_sum


@pytest.fixture(params=["sigmoid", "reciprocal"])
def form(request, monkeypatch):
    """Both forms, in blocks of a few numbers, whatever the size of the problem."""
    monkeypatch.setattr(pair_blocks, "BLOCK", 50)
    monkeypatch.setattr("variants.scores.tanh_sum.FEW_NUMBERS", 0)
    monkeypatch.setattr("variants.scores.tanh_sum.LONG", 0)
    few = 0 if request.param == "reciprocal" else 10**9
    monkeypatch.setattr("variants.scores.tanh_sum.MANY_PAIRS", few)
    return request.param


def draw_parts(rows=3, heads=2, queries=4, keys=5, units=6, dtype=torch.float64):
    rng = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype)

    return (
        normal(rows, heads, queries, units),
        normal(rows, heads, keys, units),
        normal(heads, units, 1),
    )


def by_tanh(query, key, v, features=None, feature_map=None):
    """The definition, whole in memory."""
    inside = query[:, :, :, None] + key[:, :, None]
    if features is not None:
        inside = inside + torch.einsum(
            "bhlsf,hfd->bhlsd", features.expand(-1, query.shape[1], -1, -1, -1), feature_map
        )
    return torch.einsum("bhlsd,hd->bhls", torch.tanh(inside / 2), v[:, :, 0])


def gradients_of(function, *leaves):
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    energy = function(*leaves)
    direction = torch.linspace(-1, 1, energy.numel(), dtype=energy.dtype).view_as(energy)
    return torch.autograd.grad(energy, leaves, direction)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("queries", [1, 4, 30])
def test_blocks_add_up_to_the_definition_and_to_its_gradients(form, heads, queries):
    parts = draw_parts(heads=heads, queries=queries)
    torch.testing.assert_close(tanh_sum(*parts), by_tanh(*parts), rtol=0, atol=1e-12)
    found, wanted = gradients_of(tanh_sum, *parts), gradients_of(by_tanh, *parts)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("with_features", [False, True])
def test_a_single_query_of_a_few_keys_gets_the_same_sum(monkeypatch, heads, with_features):
    rng = torch.Generator().manual_seed(1)
    parts = draw_parts(heads=heads, queries=1)
    if with_features:
        parts += (torch.randn(3, heads, 1, 5, 3, generator=rng, dtype=torch.float64),)
        parts += (torch.randn(heads, 3, 6, generator=rng, dtype=torch.float64),)
    torch.testing.assert_close(tanh_sum(*parts), by_tanh(*parts), rtol=0, atol=1e-12)
    found, wanted = gradients_of(tanh_sum, *parts), gradients_of(by_tanh, *parts)
    monkeypatch.setattr("variants.scores.tanh_sum.FEW_NUMBERS", 0)
    in_blocks = gradients_of(tanh_sum, *parts)
    for one, two, three in zip(found, wanted, in_blocks, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)
        torch.testing.assert_close(one, three, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [50, 10**6])
@pytest.mark.parametrize(("heads", "axes"), [(1, (1, 4)), (2, (2, 4)), (2, (1, 4)), (2, (2, 1))])
def test_features_enter_the_tanh_shared_or_not(monkeypatch, block, heads, axes):
    monkeypatch.setattr(pair_blocks, "BLOCK", block)
    rng = torch.Generator().manual_seed(1)
    features = torch.randn(3, *axes, 5, 3, generator=rng, dtype=torch.float64)
    feature_map = torch.randn(heads, 3, 6, generator=rng, dtype=torch.float64)
    parts = (*draw_parts(heads=heads), features, feature_map)
    torch.testing.assert_close(tanh_sum(*parts), by_tanh(*parts), rtol=0, atol=1e-12)
    found, wanted = gradients_of(tanh_sum, *parts), gradients_of(by_tanh, *parts)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_gradients_equal_finite_differences(form):
    parts = [part.requires_grad_() for part in draw_parts(2, 2, 3, 4, 5)]
    assert torch.autograd.gradcheck(tanh_sum, parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [30.0, 80.0, 900.0, 1e30])
def test_pre_activations_of_any_size_are_right(form, dtype, size):
    """Exponentials of these leave the format, one by one or in their product."""
    query, key, v = draw_parts(1, 1, 8, 8, 6, dtype)
    query[0, 0, 1::2] += torch.tensor([size, -size, size], dtype=dtype).repeat(2)
    query[0, 0, 2, 3] = size
    key[0, 0, 2::2] -= torch.tensor([size, -size, -size], dtype=dtype).repeat(2)
    key[0, 0, 1, 4] = -size
    wanted = by_tanh(query, key, v)
    near = 1e-14 if dtype == torch.float64 else 5e-6
    torch.testing.assert_close(tanh_sum(query, key, v), wanted, rtol=0, atol=near)
    found, wanted = gradients_of(tanh_sum, query, key, v), gradients_of(by_tanh, query, key, v)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=10 * near)


def test_no_query_key_or_row_changes_a_bit_of_what_another_gets():
    """At the size where reciprocals are used by themselves, and beside queries out of range."""
    query, key, v = draw_parts(3, 2, 128, 128, 8, torch.float32)
    plain = tanh_sum(query, key, v)
    assert (plain - by_tanh(query, key, v)).abs().max() < 1e-5
    wild_query, wild_key = query.clone(), key.clone()
    wild_query[1, 0, 5], wild_query[2, 1, :, 3] = 100.0, -1e30
    wild_key[1, 0, 7], wild_key[0, 1, 100:] = -95.0, 1e30
    found = tanh_sum(wild_query, wild_key, v)
    same = torch.ones_like(plain, dtype=torch.bool)
    same[1, 0, 5] = same[2, 1] = same[1, 0, :, 7] = same[0, 1, :, 100:] = False
    assert torch.equal(found[same], plain[same])
    assert torch.equal(tanh_sum(query[1:2], key[1:2], v), plain[1:2])
    wanted = by_tanh(wild_query, wild_key, v)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_what_is_not_a_number_stays_visible(form):
    query, key, v = draw_parts(1, 1)
    query[0, 0, 0, 0] = float("nan")
    key[0, 0, 1, 2] = float("nan")
    found = tanh_sum(query, key, v).isnan()[0, 0]
    assert found[0].all()
    assert found[:, 1].all()
    assert not found[1:, 2:].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_loses_only_what_its_inputs_lost(form, dtype):
    parts = draw_parts(units=64, dtype=dtype)
    found = tanh_sum(*parts)
    assert found.dtype == dtype
    wanted = by_tanh(*(part.double() for part in parts))
    off = (found.double() - wanted).abs().max() / wanted.abs().max()
    assert off < torch.finfo(dtype).eps


def test_what_a_compiler_sees_is_the_same_sum(monkeypatch):
    parts = draw_parts()
    plain = tanh_sum(*parts)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(tanh_sum(*parts), plain)


@pytest.mark.parametrize("with_features", [False, True])
def test_training_keeps_no_number_for_each_unit_of_a_pair(with_features):
    parts = list(draw_parts(2, 2, 160, 160, 64, torch.float32))
    if with_features:
        parts += [torch.randn(2, 2, 160, 160, 1), torch.randn(2, 1, 64)]
    parts = [part.requires_grad_() for part in parts]

    def work():
        for part in parts:
            part.grad = None
        tanh_sum(*parts).sum().backward()

    work()
    for part in parts:
        part.grad = None
    whole = 4 * 2 * 2 * 160 * 160 * 64
    assert peak_bytes(work, torch.device("cpu")) < whole / 3
