import pytest
import torch

import variants
from bench.api.call import Call
from bench.api.errors import InvalidConfig
from bench.api.source import Memory, Source
from bench.conformance.checks_cost import Meter
from variants.mechanisms.nsa import GATES, MEAN_KEY

variants.load_all()
DIM, HEADS = 8, 2
OPEN, SHUT = 60.0, -60.0


def built(selector, heads=HEADS, impl="auto"):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, heads=heads, regime="causal", impl=impl).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def gated(selector, x, gates):
    """The output where every query has these gates, and where there are none of its own."""
    attention = built(selector)
    heads = attention.heads
    source, query = heads.source(x, None, None), heads.query(x)
    extras = {GATES: torch.tensor(gates).double().expand(*x.shape[:2], HEADS, 3)}
    found = attention.variant.attend(
        query, None, attention.start(None, x), new=source, extras=extras
    )
    return heads.merge(found.output)


def plain(selector, x):
    other = built(selector)
    other.heads.load_state_dict(built("nsa").heads.state_dict())
    return other(x)


def test_the_window_alone_is_a_sliding_window():
    x = drawn(2, 15, DIM)
    found = gated("nsa[block=4,window=5]", x, (SHUT, SHUT, OPEN))
    torch.testing.assert_close(found, plain("sliding_window[window=5]", x))


@pytest.mark.parametrize("options", ["block=4,chosen=16", "block=32"])
def test_all_blocks_chosen_are_full_attention(options):
    x = drawn(2, 15, DIM)
    found = gated(f"nsa[{options}]", x, (SHUT, OPEN, SHUT))
    torch.testing.assert_close(found, plain("scaled_dot", x))


def test_means_of_single_keys_are_full_attention():
    x = drawn(2, 9, DIM)
    found = gated("nsa[block=1]", x, (OPEN, SHUT, SHUT))
    torch.testing.assert_close(found, plain("scaled_dot", x))


def test_means_give_nothing_before_the_first_block_is_closed():
    x = drawn(2, 9, DIM)
    found = gated("nsa[block=4]", x, (OPEN, SHUT, SHUT))
    assert float(found[:, :3].detach().abs().max()) < 1e-20
    assert float(found[:, 3:].detach().abs().min(-1).values.min()) > 0


def chosen(query, key, block, count):
    attention = built(f"nsa[block={block},chosen={count}]").variant
    call = Call(query[None], Memory(Source(key[None], key[None])), 0, causal=True)
    means = key.unflatten(1, (-1, block)).mean(2)[None]
    numbers = torch.arange(means.shape[2])
    closed = ((numbers + 1) * block <= call.position[:, None] + 1)[None, None]
    weights = (query[None] @ means.transpose(2, 3)).masked_fill(~closed, -torch.inf)
    weights = weights.softmax(-1).nan_to_num(0.0)
    return attention._chosen(call, weights, closed)[0]


def test_the_block_that_the_query_likes_is_chosen_beside_those_that_always_are():
    key = torch.zeros(HEADS, 20, DIM // HEADS, dtype=torch.float64)
    key[:, 4:8, 0], key[:, 8:12, 1] = 3, 3
    query = torch.zeros_like(key)
    query[0, 19, 0], query[1, 19, 1] = 3, 3
    found = chosen(query, key, 4, 4)[:, 19]
    assert found[0].tolist() == [True, True, False, True, True]
    assert found[1].tolist() == [True, False, True, True, True]


def test_heads_that_share_keys_choose_together():
    attention = built("nsa[block=2,chosen=3,head=gqa[heads=4,kv_heads=2]]", heads=None).variant
    weights = drawn(1, 4, 12, 6).softmax(-1)
    query = drawn(1, 4, 12, 2)
    key = drawn(1, 2, 12, 2)
    call = Call(query, Memory(Source(key, key)), 0, causal=True)
    closed = ((torch.arange(6) + 1) * 2 <= call.position[:, None] + 1)[None, None]
    found = attention._chosen(call, weights, closed)
    assert torch.equal(found[:, 0], found[:, 1])
    assert torch.equal(found[:, 2], found[:, 3])


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "selector",
    ["nsa[block=3,chosen=3,window=4]", "nsa[block=2,chosen=4,head=gqa[heads=4,kv_heads=2]]"],
)
def test_a_step_reads_what_all_queries_at_once_read(selector, padded):
    attention = built(selector, heads=None if "head" in selector else HEADS)
    x = drawn(2, 23, DIM)
    mask = torch.arange(23) < torch.tensor([23, 11])[:, None] if padded else None
    wanted, _ = attention.answer_all(x, x, mask=mask)
    state, found = attention.start(None, x), []
    for t, one in enumerate(x.split(1, 1)):
        real = None if mask is None else mask[:, t : t + 1]
        output, answer = attention.attend(one, None, state, own=(one, real, None))
        state = answer.state
        found.append(output)
    torch.testing.assert_close(torch.cat(found, 1), wanted, rtol=0, atol=1e-12)
    assert state.carried[MEAN_KEY].shape[2] == 23 // attention.variant.size


@pytest.mark.parametrize("selector", ["nsa[chosen=3]", "nsa[chosen=3,position=alibi]"])
def test_the_fused_kernel_reads_what_plain_code_reads(selector):
    x = drawn(2, 40, DIM)
    mask = torch.arange(40) < torch.tensor([40, 17])[:, None]
    found, wanted = (
        built(selector, impl=impl).answer_all(x, x, mask=mask)[0] for impl in ("auto", "eager")
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_a_step_of_decoding_looks_at_few_numbers():
    attention, x = built("nsa"), drawn(1, 1025, DIM)
    with torch.no_grad():
        _, answer = attention.answer_all(x[:, :-1], x[:, :-1])
        one = x[:, -1:]
        _, answer = attention.attend(one, None, answer.state, own=(one, None, None))  # makes room
        with Meter() as seen:
            attention.attend(one, None, answer.state, own=(one, None, None))
    assert seen.operations < 2 * 1024 * DIM  # less than one product with every key


def test_sizes_that_make_no_blocks_are_refused():
    for options in ("block=0", "chosen=2", "window=0"):
        with pytest.raises(InvalidConfig, match="nsa: "):
            built(f"nsa[{options}]")
