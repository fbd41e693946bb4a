import pytest
import torch

import variants
from bench.api.errors import InvalidConfig

variants.load_all()
DIM, HEADS = 12, 4
WIDTH = DIM // HEADS


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_keys_and_values_are_means_of_outer_products(rank):
    heads = built(f"tpa[rank={rank}]").heads
    x = drawn(1, 5, DIM)
    found = heads.source(x, None, None)
    for layer, made in ((heads.to_key, found.key), (heads.to_value, found.value)):
        for t in range(5):
            numbers = layer.weight @ x[0, t]
            over_heads = numbers[: rank * HEADS].view(rank, HEADS)
            over_width = numbers[rank * HEADS :].view(rank, WIDTH)
            wanted = sum(torch.outer(over_heads[r], over_width[r]) for r in range(rank)) / rank
            torch.testing.assert_close(made[0, :, t], wanted)
            assert int(torch.linalg.matrix_rank(made[0, :, t].detach())) <= rank


def test_factors_over_heads_that_pick_one_head_each_are_multi_head_attention():
    product, plain = built("tpa[rank=4,query_rank=4,position=none]"), built("mha")
    x = drawn(2, 7, DIM)
    x[..., 0] = 1.0  # a unit that factors over heads can use as a constant
    state = plain.heads.state_dict()
    with torch.no_grad():
        for name in ("to_query", "to_key", "to_value"):
            weight = getattr(product.heads, name).weight
            weight.zero_()
            weight[: HEADS * HEADS, 0] = 4 * torch.eye(HEADS).flatten().double()
            weight[HEADS * HEADS :] = state[f"{name}.weight"]
        product.heads.to_output.weight.copy_(state["to_output.weight"])
    torch.testing.assert_close(product(x), plain(x))


def test_turning_a_key_is_turning_its_factors_over_the_width():
    attention = built("tpa[rank=2]")
    heads, turn = attention.heads, attention.variant.turn
    x = drawn(1, 5, DIM)
    whole = turn(heads.source(x, None, None).key, 0)
    numbers = heads.to_key(x)
    over_heads = numbers[..., : 2 * HEADS].unflatten(-1, (2, HEADS))
    over_width = numbers[..., 2 * HEADS :].unflatten(-1, (2, WIDTH)).transpose(1, 2)
    factors = turn(over_width, 0)
    wanted = torch.einsum("bnrh,brne->bhne", over_heads, factors) / 2
    torch.testing.assert_close(whole, wanted)


def test_products_begin_with_a_variance_near_one():
    torch.manual_seed(0)
    heads = variants.build("tpa[heads=8]", dim=256, regime="causal").heads
    x = torch.randn(1, 200, 256)
    source = heads.source(x, None, None)
    for found in (heads.query(x), source.key, source.value):
        assert 0.8 < float(found.detach().var()) < 1.25


@pytest.mark.parametrize("options", ["heads=5", "rank=0", "query_rank=0"])
def test_sizes_that_make_no_heads_are_refused(options):
    with pytest.raises(InvalidConfig, match="tpa: "):
        built(f"tpa[{options}]")
