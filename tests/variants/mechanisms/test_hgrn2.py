import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.source import Source
from variants.mechanisms.hgrn2 import Hgrn2Config


def test_it_is_gated_linear_attention_whose_key_is_what_was_forgotten(
    beneath, answer, draw, beside
):
    drawn = draw(2, 2, 70, 70)
    hgrn2, gla = (beneath(n, regime="causal") for n in ("hgrn2", "gla[temperature=1.0]"))
    with torch.no_grad():
        gla.bias.zero_()
    gate = drawn.source.key.sigmoid()
    source = Source(1 - gate, drawn.source.value, drawn.source.mask)
    same = beside(gla, source, decay=drawn.source.key)
    expected = answer(gla, drawn.query, same).output * 5**0.5
    found = answer(hgrn2, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_no_gate_is_below_the_floor(beneath, answer, draw):
    drawn = draw(1, 1, 2, 2, lengths=())
    drawn.source.value[:, :, 1] = 0
    closed = torch.full_like(drawn.source.key, -80.0)
    closed[:, :, 0] = drawn.source.key[:, :, 0]
    variant = beneath("hgrn2[floor=0.25]", heads=1, regime="causal")
    found = answer(variant, drawn.query, Source(closed, drawn.source.value)).state.carried
    share = 0.75 * (-closed[0, 0, 0]).sigmoid()
    expected = 0.25 * torch.outer(share, drawn.source.value[0, 0, 0])
    torch.testing.assert_close(found["matrix"][0, 0], expected)


@pytest.mark.parametrize("floor", [-0.1, 1.0])
def test_a_floor_that_never_forgets_is_refused(floor):
    with pytest.raises(InvalidConfig, match="floor is at least 0 and below 1"):
        Hgrn2Config(floor=floor)
