import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve

variants.load_all()
HEADS, WIDTH = 4, 3
DIM = HEADS * WIDTH


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_as_many_key_heads_as_heads_is_multi_head_attention():
    grouped, plain = built("gqa[kv_heads=4]"), built("mha")
    grouped.load_state_dict(plain.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(grouped(x), plain(x), rtol=0, atol=0)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_it_is_multi_head_attention_whose_neighboring_heads_have_the_same_keys(kv_heads):
    grouped, plain = built(f"gqa[kv_heads={kv_heads}]"), built("mha")
    state = grouped.state_dict()
    for name in ("heads.to_key.weight", "heads.to_value.weight"):
        rows = state[name].unflatten(0, (kv_heads, WIDTH))
        state[name] = rows.repeat_interleave(HEADS // kv_heads, 0).flatten(0, 1)
    plain.load_state_dict(state)
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(grouped(x), plain(x))


def test_one_key_head_is_multi_query_attention():
    assert resolve("mqa").axes == resolve("gqa[kv_heads=1]").axes
    one, two = built("mqa"), built("gqa[kv_heads=1]")
    two.load_state_dict(one.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(one(x), two(x), rtol=0, atol=0)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_cache_holds_a_key_and_a_value_for_each_key_head(kv_heads):
    grouped = built(f"gqa[kv_heads={kv_heads}]")
    x = drawn(2, 7, DIM)
    _, answer = grouped.answer_all(x, x)
    cache = answer.state.cache
    assert not any(cache.parts.values())
    source = cache.source
    assert source.key.numel() + source.value.numel() == 2 * 7 * 2 * kv_heads * WIDTH


@pytest.mark.parametrize("options", ["kv_heads=3", "kv_heads=0", "heads=5", "heads=0"])
def test_heads_that_do_not_divide_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"must divide|must be at least 1"):
        built(f"gqa[{options}]")


def test_norms_of_queries_and_keys_are_those_of_the_heads_qk_norm():
    for norm in ("rms", "l2"):
        grouped, plain = built(f"gqa[kv_heads=4,qk_norm={norm}]"), built(f"qk_norm[norm={norm}]")
        grouped.load_state_dict(plain.state_dict())
        x = drawn(2, 7, DIM)
        torch.testing.assert_close(grouped(x), plain(x), rtol=0, atol=0)


def test_norms_are_applied_to_keys_once_when_they_arrive():
    grouped = built("gqa[qk_norm=rms]")
    x = drawn(1, 3, DIM)
    _, answer = grouped.answer_all(x, x)
    key = answer.state.cache.source.key
    torch.testing.assert_close(
        key.square().mean(-1), torch.ones_like(key[..., 0]), rtol=1e-4, atol=0
    )
    assert key.shape == (1, 2, 3, WIDTH)
