import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.mechanisms.gsa import GsaConfig


def test_slots_that_each_take_one_token_are_softmax_attention(beneath, answer, draw, beside):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("gsa[slots=6,temperature=1.0]", regime="causal")
    # token t fills slot t and leaves the others alone
    said = torch.full((6, 6), 80.0).fill_diagonal_(-80.0)
    found = answer(variant, drawn.query, beside(variant, drawn.source, gate=said)).output
    energy = drawn.query[:, :, -1:] @ drawn.source.key.mT / 5**0.5
    expected = energy.softmax(-1) @ drawn.source.value
    torch.testing.assert_close(found[:, :, -1:], expected, rtol=0, atol=1e-10)


def test_slots_are_moving_means_of_keys_and_values(beneath, answer, draw, beside):
    drawn = draw(1, 1, 30, 30, lengths=())
    variant = beneath("gsa[slots=1,temperature=1.0]", heads=1, regime="causal")
    source = beside(variant, drawn.source, gate=0.0)
    after = answer(variant, drawn.query, source).state.carried
    shares = 0.5 ** torch.arange(30, 0, -1, dtype=torch.float64)
    for name, leaf in (("slot_keys", source.key), ("slot_values", source.value)):
        torch.testing.assert_close(after[name][0, 0, 0], shares @ leaf[0, 0])


@pytest.mark.parametrize("options", [{"slots": 0}, {"temperature": 0.0}])
def test_no_slot_and_no_temperature_are_refused(options):
    with pytest.raises(InvalidConfig, match="slots must be at least 1"):
        GsaConfig(**options)
