import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.source import Source
from variants.mechanisms.rwkv7 import Rwkv7Config

NEVER = -60.0


def test_where_nothing_is_erased_or_forgotten_it_is_linear_attention(beneath, answer, draw, beside):
    drawn = draw(2, 2, 70, 70, lengths=())
    variant = beneath("rwkv7", regime="causal")
    with torch.no_grad():
        variant.mixing.zero_()
        variant.bonus.zero_()
    source = beside(variant, drawn.source, decay=NEVER, share=NEVER)
    expected = (drawn.query @ source.key.mT).tril() @ source.value
    found = answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_with_a_full_share_it_is_the_delta_rule_in_full(beneath, answer, draw, beside):
    drawn = draw(1, 2, 30, 30, lengths=())
    key = torch.nn.functional.normalize(drawn.source.key, dim=-1)
    variant = beneath("rwkv7", regime="causal")
    with torch.no_grad():
        variant.bonus.zero_()
        variant.removal.fill_(1.0)
    source = beside(variant, Source(key, drawn.source.value), decay=NEVER, share=-NEVER)
    delta = beneath("deltanet", regime="causal")
    same = beside(delta, Source(key, drawn.source.value), beta=-NEVER)
    query = torch.nn.functional.normalize(drawn.query, dim=-1)
    expected = answer(delta, query, same).output
    found = answer(variant, query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_no_unit_forgets_more_than_the_strongest_decay(beneath, answer, draw, beside):
    drawn = draw(1, 1, 2, 2, lengths=())
    drawn.source.value[:, :, 1] = 0
    variant = beneath("rwkv7", heads=1, regime="causal")
    matrices = []
    for said in (NEVER, -NEVER):
        decay = torch.tensor([[NEVER], [said]])
        source = beside(variant, drawn.source, decay=decay, share=NEVER)
        matrices.append(answer(variant, drawn.query, source).state.carried["matrix"])
    strongest = torch.exp(-torch.exp(torch.tensor(-0.5, dtype=torch.float64)))
    torch.testing.assert_close(matrices[1], strongest * matrices[0])


def test_no_rank_is_refused():
    with pytest.raises(InvalidConfig, match="rank must be at least 1"):
        Rwkv7Config(rank=0)
