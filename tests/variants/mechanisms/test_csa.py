import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from variants.lightning_indexer import KEY, KL, QUERY, WEIGHT

variants.load_all()
DIM, HEADS = 8, 2
CSA = "csa[block=3,chosen=2,window=4,index_width=6]"


def built(selector, heads=HEADS):
    torch.manual_seed(0)
    place = {"regime": "causal", "attention_only": True}
    return variants.build(selector, dim=DIM, heads=heads, **place).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def shuffled(attention):
    """Every parameter drawn, those that begin at zero, too."""
    with torch.no_grad():
        for number, parameter in enumerate(attention.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=number))
    return attention


def asked(attention, x, **call):
    """Output and divergence of a whole sequence."""
    state = attention.start(None, x)
    output, answer = attention.attend(x, None, state, own=(x, None, None), **call)
    return output, answer.terms[KL]


def test_as_many_entries_as_there_are_make_the_indexer_idle():
    x = drawn(2, 17, DIM)
    few, many, warm = (
        shuffled(built(f"csa[block=2,chosen={chosen},warm_up=0.2]")) for chosen in (2, 8, 2)
    )
    torch.testing.assert_close(many(x), asked(warm, x, progress=0.1)[0])
    assert not torch.allclose(many(x), few(x))


def test_entries_that_are_read_are_those_of_the_highest_scores():
    attention, x = shuffled(built(CSA)), drawn(1, 17, DIM)
    variant = attention.variant
    chosen = []
    original = variant.choose

    def seen(call, entries, closed):
        found = original(call, entries, closed)
        chosen.append((found, closed))
        return found

    variant.choose = seen
    attention(x)
    ((found, closed),) = chosen
    for t in range(17):
        places = closed[0, 0, t].nonzero().flatten().tolist()
        best = sorted(places, key=lambda n: (-float(found.scores[0, t, n].detach()), -n))[:2]
        assert found.read[0, 0, t].nonzero().flatten().tolist() == sorted(best)


def test_the_indexer_learns_from_its_loss_alone_and_nothing_else_does():
    attention, x = shuffled(built(CSA)), drawn(2, 17, DIM).requires_grad_()
    mine = {
        name
        for name, _ in attention.named_parameters()
        if name == "variant.index_bias" or name.split(".")[1] in (QUERY, WEIGHT, KEY, f"{KEY}_gate")
    }
    assert len(mine) == 5
    output, apart = asked(attention, x)
    output.square().sum().backward(retain_graph=True)
    for name, parameter in attention.named_parameters():
        learns = parameter.grad is not None and bool(parameter.grad.any())
        assert learns == (name not in mine), name
    attention.zero_grad()
    x.grad = None
    apart.sum().backward()
    assert x.grad is None or not x.grad.any()
    for name, parameter in attention.named_parameters():
        learns = parameter.grad is not None and bool(parameter.grad.any())
        assert learns == (name in mine), name


def test_the_loss_brings_the_indexer_to_what_entries_weigh():
    attention, x = built("csa[block=2,chosen=9,index_heads=8,index_width=8]"), drawn(1, 17, DIM)
    with torch.no_grad():
        attention.heads.to_query.weight.mul_(6)
    mine = [one for name, one in attention.named_parameters() if "index" in name]
    optimizer = torch.optim.Adam(mine, lr=0.02)
    found = []
    for _ in range(250):
        optimizer.zero_grad()
        term = asked(attention, x)[1].mean()
        term.backward()
        optimizer.step()
        found.append(term.item())
    assert found[0] > 0.1
    assert found[-1] < 0.01


def test_csa_trains_its_indexer_unless_it_is_told_otherwise():
    assert [one.name for one in resolve("csa").axes["loss"]] == ["indexer_kl"]
    assert not resolve("csa[loss=none]").axes["loss"]
    assert not resolve("hca").axes["loss"]


def test_an_indexer_without_heads_and_a_share_of_more_than_all_are_refused():
    for options in ("chosen=0", "index_heads=0", "index_width=0"):
        with pytest.raises(InvalidConfig, match=r"csa: .*must be at least 1, got "):
            built(f"csa[{options}]")
    with pytest.raises(InvalidConfig, match=r"csa: warm_up must be in \[0, 1\), got 1"):
        built("csa[warm_up=1.0]")
