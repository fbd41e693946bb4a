"""Dropout of 16 random bits a unit: what stays, how it is scaled, and what learns."""

import pytest
import torch

from tasks.backbones.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.2, 0.4, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_share_is_dropped_and_the_rest_is_scaled(p, dtype):
    torch.manual_seed(0)
    found = Dropout(p)(torch.ones(400, 401, dtype=dtype))
    assert found.dtype == dtype
    stays = found != 0
    # four standard errors of a share of 160,400
    assert stays.double().mean() == pytest.approx(1 - p, abs=4 * (p * (1 - p) / 160_400) ** 0.5)
    assert found[stays].unique().double() == pytest.approx(1 / (1 - p), rel=4e-3)
    # bits are cut out of numbers of 64: each place is as likely as the others
    by_place = stays.flatten()[:160_400].view(-1, 4).double().mean(0)
    assert by_place == pytest.approx(1 - p, abs=4 * (p * (1 - p) / 40_100) ** 0.5)


def test_neighbors_are_dropped_independently():
    torch.manual_seed(0)
    stays = (Dropout(0.5)(torch.ones(200_000)) != 0).double() - 0.5
    for distance in range(1, 9):
        together = (stays[distance:] * stays[:-distance]).mean() / 0.25
        assert abs(together) < 4 / 200_000**0.5


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 7), (0, 4)])
def test_a_seed_draws_the_same_units_of_any_shape_and_gradients_flow_through_what_stays(shape):
    layer, x = Dropout(0.4), torch.randn(shape, requires_grad=True)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(layer(x))
    assert torch.equal(*found)
    found[0].sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(found[0], x * x.grad)


def test_nothing_is_dropped_in_a_test_or_at_a_share_of_zero():
    x = torch.randn(4, 5)
    assert torch.equal(Dropout(0.4).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()
