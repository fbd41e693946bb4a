"""Joined blocks against the sum over all pairs of steps."""

import pytest
import torch

from variants.mechanisms.decayed_products import BLOCK, decayed_products, decayed_sums

LENGTHS = (1, 2, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 31, 32, 33, 64, 100)


def drawn(length, width, strongest=3.0):
    rng = torch.Generator().manual_seed(length)
    shape = 2, 3, length, width

    def normal():
        return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()

    log_decay = -strongest * torch.rand(*shape, generator=rng, dtype=torch.float64)
    return normal(), normal(), normal(), log_decay.requires_grad_()


def pair_by_pair(left_log, right_log, diagonal):
    size = left_log.shape[-2]
    past = torch.ones(size, size, dtype=torch.bool).tril(diagonal)
    gap = left_log[..., :, None, :] - right_log[..., None, :, :]
    return gap.masked_fill(~past[:, :, None], float("-inf")).exp()


def gradients(found, leaves):
    return torch.autograd.grad(found.sin().sum(), leaves)


@pytest.mark.parametrize("diagonal", [0, -1])
@pytest.mark.parametrize("units", [1, 5])
@pytest.mark.parametrize("length", LENGTHS)
def test_products_equal_the_sum_over_all_pairs(length, units, diagonal):
    left, right, _, log_decay = drawn(length, 5)
    total = log_decay[..., :units].cumsum(-2)
    start = total - log_decay[..., :units] if diagonal else total
    decay = pair_by_pair(start, total, diagonal)
    expected = (left[..., :, None, :] * right[..., None, :, :] * decay).sum(-1)
    found = decayed_products(left, right, start, total, diagonal)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    leaves = (left, right, log_decay)
    torch.testing.assert_close(
        gradients(found, leaves), gradients(expected, leaves), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_equal_the_sum_over_all_pairs(length):
    query, key, value, log_decay = drawn(length, 5)
    total = log_decay.cumsum(-2)
    weights = (query @ key.mT)[..., None] * pair_by_pair(total, total, 0)
    expected = (weights * value[..., None, :, :]).sum(-2)
    found = decayed_sums(query, key, value, total)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    leaves = (query, key, value, log_decay)
    torch.testing.assert_close(
        gradients(found, leaves), gradients(expected, leaves), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("strongest", [1e3, 1e6])
def test_what_has_decayed_to_nothing_is_zero_and_no_nan(strongest):
    left, right, value, log_decay = drawn(42, 5, strongest)
    total = log_decay.cumsum(-2)
    found = decayed_products(left, right, total, total, 0)
    earlier = decayed_products(left, right, total - log_decay, total, -1)
    sums = decayed_sums(left, right, value, total)
    here = (left * right).sum(-1)
    torch.testing.assert_close(found.diagonal(dim1=-2, dim2=-1), here, rtol=0, atol=1e-12)
    leaves = (left, right, log_decay)
    for one in (found, earlier, sums):
        assert one.isfinite().all()
        assert all(slope.isfinite().all() for slope in gradients(one, leaves))
