import pytest
import torch

from bench.api.errors import InvalidConfig
from variants.mechanisms.gla import GlaConfig


def test_with_a_constant_decay_it_is_retention(beneath, answer, draw, beside):
    drawn = draw(2, 2, 80, 80)
    gla = beneath("gla[temperature=1.0]", regime="causal")
    kept = torch.tensor([0.96875, 0.984375], dtype=torch.float64)
    with torch.no_grad():
        gla.bias.copy_(kept.logit()[:, None])
    found = answer(gla, drawn.query, beside(gla, drawn.source, decay=0.0)).output
    retnet = beneath("retnet[rotation=false]", regime="causal")
    expected = answer(retnet, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_each_row_of_the_matrix_decays_by_itself(beneath, answer, draw, beside):
    drawn = draw(1, 1, 2, 2, lengths=())
    variant = beneath("gla[temperature=1.0]", heads=1, regime="causal")
    with torch.no_grad():
        variant.bias.zero_()
    drawn.source.value[:, :, 1] = 0
    said = torch.tensor([0.0, 1.0, -1.0, 60.0, -60.0])
    source = beside(variant, drawn.source, decay=said)
    state = answer(variant, drawn.query, source).state.carried["matrix"]
    first = torch.outer(drawn.source.key[0, 0, 0], drawn.source.value[0, 0, 0])
    torch.testing.assert_close(state[0, 0], said.double().sigmoid()[:, None] * first)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"rank": 0}])
def test_no_temperature_and_no_rank_are_refused(options):
    with pytest.raises(InvalidConfig, match="temperature must be positive and rank at least 1"):
        GlaConfig(**options)
