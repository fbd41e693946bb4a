import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.mechanisms.gated_deltanet import GatedDeltaNetConfig

NEVER = -60.0
"""Said by a token that forgets or erases nothing."""


def test_without_decay_it_is_deltanet(beneath, answer, draw, beside):
    drawn = draw(2, 2, 70, 70)
    gated, plain = (beneath(name, regime="causal") for name in ("gated_deltanet", "deltanet"))
    found = answer(gated, drawn.query, beside(gated, drawn.source, step=NEVER)).output
    expected = answer(plain, drawn.query, beside(plain, drawn.source)).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_where_nothing_is_written_the_matrix_decays(beneath, answer, draw, beside):
    drawn = draw(1, 2, 40, 40, lengths=())
    variant = beneath("gated_deltanet", regime="causal")
    beta = torch.full((40, 1), NEVER)
    beta[0] = 0.0
    source = beside(variant, drawn.source, beta=beta, step=0.5)
    asked = drawn.query[:, :, :1].expand(-1, -1, 40, -1).clone()
    found = answer(variant, asked, source).output
    step = torch.nn.functional.softplus(0.5 + variant.bias)
    decay = torch.exp(-variant.rate.exp()[:, None] * step).detach()
    expected = found[:, :, :1] * decay[:, :, None] ** torch.arange(40)[:, None]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_rates_and_steps_begin_where_mamba_has_them(beneath):
    variant = beneath("gated_deltanet", heads=64, regime="causal", seed=None)
    step = torch.nn.functional.softplus(variant.bias)
    assert 0.001 <= step.min() < step.max() <= 0.1
    assert 1 <= variant.rate.exp().min() < variant.rate.exp().max() <= 16


def test_a_matrix_that_could_grow_without_end_is_refused():
    with pytest.raises(InvalidConfig, match="reach is above 0 and at most 2"):
        GatedDeltaNetConfig(reach=2.1)
