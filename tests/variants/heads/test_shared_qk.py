import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

variants.load_all()
DIM, HEADS = 12, 4


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_keys_are_queries_at_unit_length():
    heads, x = built("mha[head=shared_qk]").heads, drawn(2, 7, DIM)
    query, source, _ = heads.own(x, None, None, {})
    assert torch.equal(query, heads.query(x))
    assert torch.equal(source.key, heads.source(x, None, None).key)
    torch.testing.assert_close(source.key * query.norm(dim=-1, keepdim=True), query)
    torch.testing.assert_close(source.key.norm(dim=-1), torch.ones(2, HEADS, 7).double())


@pytest.mark.parametrize("bias", ["true", "false"])
def test_they_are_plain_heads_whose_keys_are_replaced(bias):
    shared = built(f"mha[head=shared_qk[bias={bias}]]")
    plain = built(f"mha[bias={bias}]")
    missing = plain.load_state_dict(shared.state_dict(), strict=False)
    assert [name.rpartition(".")[0] for name in missing.missing_keys] == ["heads.to_key"] * (
        2 if bias == "true" else 1
    )
    x = drawn(2, 7, DIM)
    query, source = plain.heads.query(x), plain.heads.source(x, None, None)
    key = query / query.norm(dim=-1, keepdim=True)
    energy = query @ key.transpose(-1, -2) * (DIM / HEADS) ** -0.5
    weights = energy.masked_fill(torch.ones(7, 7).triu(1).bool(), float("-inf")).softmax(-1)
    torch.testing.assert_close(shared(x), plain.heads.merge(weights @ source.value))


def test_a_state_of_zeros_has_a_key_of_zeros_and_finite_gradients():
    heads, x = built("mha[head=shared_qk]").heads, torch.zeros(1, 2, DIM, requires_grad=True)
    key = heads.source(x.double(), None, None).key
    assert not key.any()
    key.sum().backward()
    assert x.grad.isfinite().all()


def test_queries_of_another_sequence_and_heads_that_do_not_fit_are_refused():
    with pytest.raises(Refused, match="keys of another sequence"):
        built("mha[head=shared_qk]", regime="cross")
    with pytest.raises(Refused, match="no key"):
        built("mha[head=shared_qk]", regime="pool")
    with pytest.raises(InvalidConfig, match="heads must divide the model width 12, got 5"):
        built("mha[head=shared_qk[heads=5]]")
