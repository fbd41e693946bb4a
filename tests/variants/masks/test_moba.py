from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variants
from bench.api.call import Call
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Memory, Source
from bench.conformance import as_text, certify
from variants.block_means import block_means
from variants.masks import moba

variants.load_all()
DIM = 8


def built(selector):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, heads=2, regime="causal").double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def seen(block, chosen, query, key):
    """Which keys each query sees, of one row."""
    mask = built(f"moba[block={block},chosen={chosen}]").variant.mask
    call = Call(query[None], Memory(Source(key[None], key[None])), 0, causal=True)
    return mask.window(call)[0][0]


@pytest.mark.parametrize("options", ["block=32", "block=4,chosen=16", "block=1,chosen=16"])
def test_all_blocks_are_full_attention(options):
    chosen, full = built(f"moba[{options}]"), built("scaled_dot")
    chosen.load_state_dict(full.state_dict())
    x = drawn(2, 15, DIM)
    torch.testing.assert_close(chosen(x), full(x))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 17), st.integers(0, 10**6))
def test_a_query_sees_its_own_block_and_the_best_ones_before(block, chosen, length, seed):
    query, key = drawn(2, length, DIM, seed=seed), drawn(2, length, DIM, seed=seed + 1)
    found = seen(block, chosen, query, key)
    means = [[h[n : n + block].mean(0) for n in range(0, length, block)] for h in key]
    for head in range(2):
        for t in range(length):
            own = t // block
            liked = sorted(range(own), key=lambda n: -float(query[head, t] @ means[head][n]))
            blocks = {own, *liked[: chosen - 1]}
            wanted = [s <= t and s // block in blocks for s in range(length)]
            assert found[head, t].tolist() == wanted


@pytest.mark.parametrize("seed", range(6))
def test_a_block_of_padding_alone_is_never_chosen(seed):
    """Its mean is zero, which many a query would like more than a real block."""
    query, key = drawn(1, 1, 1, DIM, seed=seed), drawn(1, 1, 13, DIM, seed=seed + 1)
    key[:, :, :4] = -query
    real = torch.arange(13) < 5
    real[12] = True
    mask = built("moba[block=4,chosen=2]").variant.mask
    call = Call(query, Memory(Source(key, key, real[None])), 12, causal=True)
    found = mask.window(call)[0][0, 0, 0].nonzero().flatten().tolist()
    assert found in ([0, 1, 2, 3, 12], [4, 12])
    assert int(mask.gather(call).allowed.sum()) == len(found)


def test_means_are_made_once(monkeypatch):
    attention, x = built("moba[block=4,chosen=2]"), drawn(2, 17, DIM)
    made = []
    real = block_means
    monkeypatch.setattr(
        moba, "block_means", lambda key, *rest: made.append(key) or real(key, *rest)
    )
    with torch.no_grad():
        state, found = attention.start(None, x), []
        for one in (x[:, :9], *x[:, 9:].split(1, 1)):
            output, answer = attention.attend(one, None, state, own=(one, None, None))
            state = answer.state
            found.append(output)
        steps = [key.shape[2] for key in made]
        torch.testing.assert_close(torch.cat(found, 1), attention(x))
    assert steps == [8, 4, 4]


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("options", ["block=2,chosen=2", "block=3,chosen=1", "block=1,chosen=9"])
def test_blocks_that_are_copied_out_equal_the_loops(equals_oracle, always_gather, options, padded):
    equals_oracle(f"moba[{options}]", "causal", padded=padded)


def test_a_step_behind_padding_copies_none_of_it(always_gather):
    attention, x, new = built("moba[block=2,chosen=3]"), drawn(2, 9, DIM), drawn(2, 1, DIM, seed=2)
    mask = torch.arange(9) < torch.tensor([9, 4])[:, None]
    here = torch.ones(2, 1, dtype=torch.bool)
    with torch.no_grad():
        state = attention.attend(x, None, attention.start(None, x), own=(x, mask, None))[1].state
        found, _ = attention.attend(new, None, state, own=(new, here, None))
        changed = replace(state.cache.source, value=state.cache.source.value.clone())
        changed.value[1, :, 4:9] = 100.0
        state = replace(state, cache=replace(state.cache, source=changed))
        same, _ = attention.attend(new, None, state, own=(new, here, None))
    assert torch.equal(found, same)


def test_one_block_is_the_own_one():
    found = seen(3, 1, drawn(2, 7, DIM), drawn(2, 7, DIM, seed=2))
    place = torch.arange(7)
    own = (place[:, None] // 3 == place // 3) & (place <= place[:, None])
    assert torch.equal(found, own.expand(2, 7, 7))


def test_keys_of_another_direction_choose_another_block():
    key = torch.zeros(2, 9, DIM, dtype=torch.float64)
    key[:, 0:3, 0], key[:, 3:6, 1] = 1, 1
    query = torch.zeros(2, 9, DIM, dtype=torch.float64)
    query[0, 8, 0], query[1, 8, 1] = 1, 1
    found = seen(3, 2, query, key)[:, 8]
    assert found[0].tolist() == [True] * 3 + [False] * 3 + [True] * 3
    assert found[1].tolist() == [False] * 3 + [True] * 6


def test_the_mean_of_a_block_leaves_padding_out():
    key = drawn(1, 2, 5, 3)
    mask = torch.tensor([[True, True, True, False, False]])
    found, count = block_means(key, mask, 2)
    assert count.tolist() == [[2, 1, 0]]
    assert found.shape == (1, 2, 3, 3)
    torch.testing.assert_close(found[:, :, 0], key[:, :, :2].mean(2))
    torch.testing.assert_close(found[:, :, 1], key[:, :, 2])
    assert not found[:, :, 2].any()


@pytest.mark.parametrize("length", [1, 5, 6, 9])
def test_means_without_padding_are_those_of_a_mask_that_shows_all(length):
    key = drawn(2, 3, length, 4)
    found, count = block_means(key, None, 3)
    wanted, counted = block_means(key, torch.ones(2, length, dtype=torch.bool), 3)
    torch.testing.assert_close(found, wanted)
    assert torch.equal(count, counted)


def test_no_gradient_goes_through_the_choice():
    attention = built("moba[block=2,chosen=2]")
    x = drawn(1, 8, DIM).requires_grad_()
    query = attention.heads.query(x)
    assert not attention.variant.mask.window(Call(query, attention.prepare(x), 0, causal=True))[
        0
    ].requires_grad


QUICK = ("runs_somewhere", "causality", "padding_invariance", "splits", "oracle", "gradients")


@pytest.mark.parametrize("selector", ["moba[position=rope]", "moba[block=2,position=rope]"])
def test_blocks_of_turned_keys_are_green(selector):
    found = certify(selector, checks=QUICK)
    assert found.green(), as_text([found])
    assert found.passed == QUICK


def test_the_choice_sees_keys_that_are_turned_once():
    attention, x = built("moba[block=3,chosen=2,position=rope]"), drawn(1, 12, DIM)
    variant, heads = attention.variant, attention.heads
    source = heads.source(x, None, None)
    query, key = variant.turn(heads.query(x), 0), variant.turn(source.key, 0, keys=True)
    wanted = seen(3, 2, query[0], key[0])
    _, answer = attention.answer_all(x, x)
    assert torch.equal(answer.weights[0] > 0, wanted)
    # turned again or not at all they would choose other blocks
    assert not torch.equal(seen(3, 2, query[0], source.key[0]), wanted)
    assert not torch.equal(seen(3, 2, query[0], variant.turn(key, 0, keys=True)[0]), wanted)


def test_blocks_before_the_query_need_an_order_of_time():
    with pytest.raises(Refused, match="earlier keys"):
        variants.build("moba", dim=DIM, heads=2, regime="self")
    with pytest.raises(InvalidConfig, match="at least 1"):
        built("moba[block=0]")
