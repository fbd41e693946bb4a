import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.kept_bytes import state_bytes
from bench.api.variant import Variant
from variants.lightning_indexer import KEY, KL, QUERY, WEIGHT

variants.load_all()
DIM, HEADS, LENGTH = 8, 2, 12
DOUBLE = 8


def built(selector, heads=HEADS):
    torch.manual_seed(0)
    made = variants.build(selector, dim=DIM, heads=heads, regime="causal", attention_only=True)
    return made.double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def asked(attention, x, **call):
    """Output and answer of a whole sequence."""
    return attention.attend(x, None, attention.start(None, x), own=(x, None, None), **call)


def of_the_indexer(attention):
    return {
        name: one for name, one in attention.named_parameters() if name.split(".")[1] in INDEXER
    }


INDEXER = (QUERY, WEIGHT, KEY)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("options", ["chosen=1", "chosen=3", "chosen=3,index_heads=1"])
def test_vectorized_code_equals_the_loops(equals_oracle, options, padded):
    equals_oracle(f"dsa[{options}]", "causal", padded=padded)
    equals_oracle(f"dsa[{options},mask=moba[block=2,chosen=2]]", "causal", padded=padded)


def test_all_keys_are_read_during_warm_up(equals_oracle):
    equals_oracle("dsa[chosen=1,warm_up=0.3]", "causal", progress=0.2)
    chosen, full = built("dsa[chosen=1,warm_up=0.3]"), built("scaled_dot")
    full.heads.load_state_dict(chosen.heads.state_dict())
    x = drawn(2, LENGTH, DIM)
    torch.testing.assert_close(asked(chosen, x, progress=0.29)[0], full(x))
    assert not torch.allclose(asked(chosen, x, progress=0.3)[0], full(x))


@pytest.mark.parametrize("chosen", [LENGTH, 2048])
@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
def test_with_as_many_keys_as_there_are_it_is_softmax_attention(chosen, position):
    sparse = built(f"dsa[chosen={chosen},position={position}]")
    full = built(f"scaled_dot[position={position}]")
    full.heads.load_state_dict(sparse.heads.state_dict())
    x = drawn(2, LENGTH, DIM)
    torch.testing.assert_close(sparse(x), full(x))


@pytest.mark.parametrize("chosen", [1, 3, 5])
def test_heads_read_the_same_keys_and_no_more_of_them(chosen):
    _, answer = asked(built(f"dsa[chosen={chosen}]"), drawn(2, LENGTH, DIM))
    read = answer.weights > 0
    assert torch.equal(read[:, 0], read[:, 1])
    wanted = torch.arange(1, LENGTH + 1).clamp(max=chosen)
    assert torch.equal(read[:, 0].sum(-1), wanted.expand(2, -1))


def test_the_keys_are_those_that_the_indexer_scores_highest():
    attention = built("dsa[chosen=3,index_heads=2,index_width=4]")
    x = drawn(1, LENGTH, DIM)
    _, answer = asked(attention, x)
    query, weight = (attention.query_maps[name](x)[0, :, 0] for name in (QUERY, WEIGHT))
    key = attention.key_maps[KEY](x)[0, :, 0]
    dots = torch.einsum("ljw,sw->lsj", query.unflatten(-1, (2, 4)), key).relu()
    index = (dots * weight[:, None]).sum(-1).detach()
    for t in range(3, LENGTH):
        best = sorted(range(t + 1), key=lambda s: (-float(index[t, s]), -s))[:3]
        assert sorted(best) == answer.weights[0, 0, t].nonzero().flatten().tolist()


@pytest.mark.parametrize("padded", [True, False])
def test_keys_that_are_copied_out_equal_the_loops(equals_oracle, monkeypatch, padded):
    monkeypatch.setattr(Variant, "gather_from", 0)
    equals_oracle("dsa[chosen=3]", "causal", padded=padded)


@pytest.mark.parametrize("progress", [0.1, 1.0])
def test_keys_that_are_copied_out_have_the_same_divergence(monkeypatch, progress):
    attention, x = built("dsa[chosen=3]"), drawn(2, LENGTH, DIM)
    wanted, _ = (
        asked(attention, x, progress=progress, want_weights=w)[1].terms for w in (True, False)
    )
    monkeypatch.setattr(Variant, "gather_from", 0)
    for weights in (True, False):
        found = asked(attention, x, progress=progress, want_weights=weights)[1].terms
        torch.testing.assert_close(found[KL], wanted[KL], rtol=0, atol=1e-12)


def test_the_indexer_learns_from_its_loss_alone_and_nothing_else_does():
    attention, x = built("dsa[chosen=4]"), drawn(2, LENGTH, DIM).requires_grad_()
    mine = of_the_indexer(attention)
    assert len(mine) == 3
    output, answer = asked(attention, x)
    output.square().sum().backward(retain_graph=True)
    assert x.grad.abs().sum() > 0
    assert all(one.grad is None or not one.grad.any() for one in mine.values())
    attention.zero_grad()
    x.grad = None
    answer.terms[KL].sum().backward()
    assert x.grad is None or not x.grad.any()
    for name, parameter in attention.named_parameters():
        learns = parameter.grad is not None and bool(parameter.grad.any())
        assert learns == (name in mine), name


def test_an_indexer_that_is_the_main_attention_has_no_divergence():
    """ReLU(q . k) - ReLU(-q . k) is q . k, so two heads can be one head of attention."""
    attention = built("dsa[chosen=3,index_heads=2,index_width=8]", heads=1)
    x = drawn(2, LENGTH, DIM)
    query, key = attention.heads.query(x)[:, 0], attention.heads.source(x, None, None).key
    # energies are divided by the root of 8, scores by that of 2 * 8
    weight = 2**0.5 * torch.tensor([1.0, -1.0]).double()
    extras = {
        QUERY: torch.cat((query, -query), -1)[:, :, None],
        WEIGHT: weight.expand(2, LENGTH, 1, 2),
    }
    source = attention.heads.source(x, None, None)
    variant = attention.variant

    def apart(factor):
        found = variant.attend(
            query[:, None],
            None,
            variant.start(None, None),
            new=type(source)(source.key, source.value, extras={KEY: factor * key}),
            extras=extras,
        )
        return found.terms[KL]

    torch.testing.assert_close(apart(1.0), torch.zeros(2, LENGTH).double(), rtol=0, atol=1e-12)
    assert (apart(0.5)[:, 3:] > 1e-4).all()
    # and the keys of the highest energy are read
    full = built("top_k[k=3]", heads=1)
    full.heads.load_state_dict(attention.heads.state_dict())
    found = variant.attend(
        query[:, None],
        None,
        variant.start(None, None),
        new=type(source)(source.key, source.value, extras={KEY: key}),
        extras=extras,
    )
    torch.testing.assert_close(attention.heads.merge(found.output), full(x))


def test_the_loss_brings_the_indexer_to_the_attention_that_stands_still():
    attention, x = built("dsa[chosen=12,index_heads=4,index_width=8]"), drawn(1, LENGTH, DIM)
    with torch.no_grad():
        for projection in (attention.heads.to_query, attention.heads.to_key):
            projection.weight.mul_(3)  # attention that is sharper than its start
    mine = of_the_indexer(attention)
    optimizer = torch.optim.Adam(mine.values(), lr=0.02)
    found = []
    for _ in range(250):
        optimizer.zero_grad()
        term = asked(attention, x)[1].terms[KL].mean()
        term.backward()
        optimizer.step()
        found.append(term.item())
    assert found[0] > 0.1
    assert found[-1] < 0.01


def test_a_cache_keeps_one_vector_of_the_indexer_beside_keys_and_values():
    attention, x = built("dsa[index_width=6]"), drawn(3, LENGTH, DIM)
    with torch.no_grad():
        state = attention.start(None, x)
        for one in x.split(1, 1):
            _, answer = attention.attend(one, None, state, own=(one, None, None))
            state = answer.state
    assert state_bytes([state]) == 3 * LENGTH * (2 * DIM + 6) * DOUBLE


@pytest.mark.parametrize("head", ["gqa[heads=4,kv_heads=2]", "mla"])
def test_heads_that_share_keys_share_the_choice(head):
    attention, x = built(f"dsa[chosen=2,head={head}]", heads=None), drawn(2, LENGTH, DIM)
    _, answer = asked(attention, x)
    read = answer.weights > 0
    assert torch.equal(read, read[:, :1].expand_as(read))


def test_sizes_and_places_that_make_no_sense_are_refused():
    for options in ("chosen=0", "index_heads=0", "index_width=0"):
        with pytest.raises(InvalidConfig, match=r"dsa: .*must be at least 1, got "):
            built(f"dsa[{options}]")
    with pytest.raises(InvalidConfig, match=r"warm_up must be in \[0, 1\), got 1"):
        built("dsa[warm_up=1.0]")
    with pytest.raises(Refused, match="earlier keys"):
        variants.build("dsa", dim=DIM, heads=2, regime="self", attention_only=True)
