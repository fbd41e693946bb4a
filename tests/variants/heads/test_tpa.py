import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.kept_bytes import state_bytes
from bench.conformance.checks_cost import Meter

variants.load_all()
DIM, HEADS = 12, 4
WIDTH = DIM // HEADS


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, **{"dim": DIM, "regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_keys_and_values_are_means_of_outer_products(rank):
    heads = built(f"tpa[rank={rank}]").heads
    x = drawn(1, 5, DIM)
    found = heads.source(x, None, None).written()
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


@pytest.mark.parametrize("position", ["rope", "xpos"])
def test_turning_the_factors_over_the_width_is_turning_the_keys(position):
    attention = built(f"tpa[rank=2,position={position}]", dim=16)
    packed, turn = attention.heads.source(drawn(1, 5, 16), None, None), attention.variant.turn
    found = attention.variant.receive(packed, 3).source
    wanted = turn(packed.written().key, 3, keys=True)
    assert not torch.allclose(wanted, packed.written().key)
    torch.testing.assert_close(found.written().key, wanted)
    assert torch.equal(found.written().value, packed.written().value)


def step_by_step(attention, x, parts=1):
    state, found = attention.start(None, x), []
    for one in x.split(parts, 1):
        output, answer = attention.attend(one, None, state, own=(one, None, None))
        state = answer.state
        found.append(output)
    return torch.cat(found, 1), state


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("options", ["rank=1", "rank=2", "rank=2,position=none", "rank=4,heads=2"])
def test_a_cache_keeps_the_factors_of_keys_and_values_and_nothing_else(options, gradients):
    attention, x = built(f"tpa[{options}]"), drawn(2, 9, DIM)
    rank, heads = int(options[5]), attention.heads.dims.heads
    numbers = 2 * rank * (heads + DIM // heads)  # (R_K + R_V) (h + d_h)
    with torch.set_grad_enabled(gradients):
        for parts in (9, 4, 1):
            output, state = step_by_step(attention, x, parts)
            torch.testing.assert_close(output, attention(x))
            source = state.cache.source
            assert source.key.shape == (2, 1, 9, numbers)
            assert source.value.untyped_storage().data_ptr() == source.key.data_ptr()
            assert not any(state.cache.parts.values())
            assert state_bytes([state]) == 2 * 9 * numbers * 8


def test_rows_that_are_picked_keep_their_factors():
    attention, x, new = built("tpa"), drawn(3, 6, DIM), drawn(3, 1, DIM, seed=2)
    order = torch.tensor([2, 0])
    with torch.no_grad():
        _, state = step_by_step(attention, x)
        wanted, _ = attention.attend(new, None, state, own=(new, None, None))
        few, chosen = new[order], state.select(order)
        found, _ = attention.attend(few, None, chosen, own=(few, None, None))
    assert state_bytes([chosen]) * 3 == state_bytes([state]) * 2
    torch.testing.assert_close(found, wanted[order])


@pytest.mark.parametrize("score", ["additive", "general", "scaled_dot"])
def test_what_a_score_prepares_is_made_of_keys_that_are_written_out(score):
    attention, x = built(f"{score}[head=tpa]"), drawn(2, 9, DIM)
    output, state = step_by_step(attention, x, 2)
    torch.testing.assert_close(output, attention(x))
    assert not state.cache.parts


def test_products_begin_with_a_variance_near_one():
    torch.manual_seed(0)
    heads = variants.build("tpa[heads=8]", dim=256, regime="causal").heads
    x = torch.randn(1, 200, 256)
    source = heads.source(x, None, None).written()
    for found in (heads.query(x), source.key, source.value):
        assert 0.8 < float(found.detach().var()) < 1.25


@pytest.mark.parametrize("options", ["heads=5", "rank=0", "query_rank=0"])
def test_sizes_that_make_no_heads_are_refused(options):
    with pytest.raises(InvalidConfig, match="tpa: "):
        built(f"tpa[{options}]")


@pytest.mark.parametrize("options", ["rank=1", "rank=4", "rank=2,position=alibi"])
def test_a_step_behind_padding_reads_factors_as_if_they_were_written_out(options):
    x, new = drawn(3, 6, DIM), drawn(3, 1, DIM, seed=2)
    mask = torch.arange(6) < torch.tensor([6, 3, 0])[:, None]
    here = torch.ones(3, 1, dtype=torch.bool)
    found = []
    for impl in ("auto", "eager"):
        attention = built(f"tpa[{options}]", impl=impl)
        with torch.no_grad():
            start = attention.start(None, x)
            _, prompt = attention.attend(x, None, start, own=(x, mask, None))
            output, _ = attention.attend(
                new, None, prompt.state, own=(new, here, None), want_weights=False
            )
        found.append(output)
    torch.testing.assert_close(*found)


def test_a_step_writes_no_key_out():
    attention, keys = built("tpa[rank=2]", dim=64), 4000
    x = drawn(1, keys, 64)
    with torch.no_grad():
        state = attention.attend(x, None, attention.start(None, x), own=(x, None, None))[1].state
        for new in drawn(2, 1, 1, 64, seed=2):  # the first step makes room for those behind it
            with Meter() as meter:
                step = {"own": (new, None, None), "want_weights": False}
                state = attention.attend(new, None, state, **step)[1].state
    room = 1.25 * 4 * (4 + 16)
    numbers = meter.peak / 8 / keys - room
    assert numbers < 2 * (4 + 16), "energies of a key, and none of its 128 numbers"
