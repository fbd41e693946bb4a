import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.source import Source
from variants.mechanisms.deltanet import DeltaNetConfig
from variants.mechanisms.unit_vectors import oracle_unit, unit

ALWAYS = 40.0
"""Said by a token that erases and writes in full."""


def test_after_a_full_step_the_value_is_read_back_exactly(beneath, answer, draw, beside):
    drawn = draw(2, 2, 70, 70, lengths=())
    variant = beneath("deltanet", regime="causal")
    source = beside(variant, drawn.source, beta=ALWAYS)
    found = answer(variant, source.key, source).output
    torch.testing.assert_close(found, source.value, rtol=0, atol=1e-4)


def test_with_orthogonal_keys_it_is_linear_attention_of_shares_of_values(
    beneath, answer, draw, beside
):
    drawn = draw(1, 2, 5, 5, lengths=())
    orthogonal = torch.linalg.qr(drawn.source.key)[0]
    variant = beneath("deltanet", regime="causal")
    source = beside(variant, Source(orthogonal, drawn.source.value))
    shares = source.extras["beta"].sigmoid() * source.value
    expected = (unit(drawn.query) @ unit(orthogonal).mT).tril() @ shares
    found = answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_with_a_reach_of_two_a_full_step_turns_what_stood_there_around(
    beneath, answer, draw, beside
):
    drawn = draw(1, 1, 2, 2, lengths=())
    key = drawn.source.key[:, :, :1].expand(-1, -1, 2, -1).clone()
    value = drawn.source.value.clone()
    value[:, :, 1] = 0
    variant = beneath("deltanet[reach=2.0]", heads=1, regime="causal")
    beta = torch.tensor([0.0, ALWAYS]).view(2, 1)
    source = beside(variant, Source(key, value), beta=beta)
    found = answer(variant, key, source).output
    torch.testing.assert_close(found[:, :, 1], -found[:, :, 0], rtol=0, atol=1e-4)


def test_unit_vectors_have_length_one_and_zeros_stay(draw):
    found = unit(draw().query)
    torch.testing.assert_close(
        found.norm(dim=-1), torch.ones_like(found[..., 0]), rtol=0, atol=1e-4
    )
    assert not unit(torch.zeros(1, 1, 2, 5)).any()
    one = draw().query[0, 0, 0]
    torch.testing.assert_close(oracle_unit(one), unit(one.view(1, 1, 1, 5)).flatten())


@pytest.mark.parametrize("reach", [0.0, 2.5])
def test_a_matrix_that_could_grow_without_end_is_refused(reach):
    with pytest.raises(InvalidConfig, match="reach is above 0 and at most 2"):
        DeltaNetConfig(reach=reach)
