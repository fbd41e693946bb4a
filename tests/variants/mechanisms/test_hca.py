import torch

import variants
from variants.mechanisms.compressed_entries import KEY_GATE, VALUE_GATE

variants.load_all()
DIM, HEADS = 8, 2
WIDTH = DIM // HEADS


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


def test_entries_of_one_key_are_the_keys_beside_the_window():
    """With a block of one key and a window of one, a query reads its own key twice."""
    attention, x = built("hca[block=1,window=1]", heads=1), drawn(1, 7, DIM)
    query, source = attention.heads.query(x)[0, 0], attention.heads.source(x, None, None)
    key, value = source.key[0, 0], source.value[0, 0]
    weights = (query @ key.T / DIM**0.5).exp().tril()
    weights = weights + torch.diag(weights.diagonal())
    read = weights / weights.sum(-1, keepdim=True) @ value
    torch.testing.assert_close(attention(x), attention.heads.merge(read[None, None]))


def test_an_entry_that_leaves_out_the_block_before_is_that_of_hca():
    sparse, x = shuffled(built("csa[block=3,chosen=9,window=4]")), drawn(2, 14, DIM)
    heavy = built("hca[block=3,window=4]")
    heavy.heads.load_state_dict(sparse.heads.state_dict())
    with torch.no_grad():
        for name, width in ((KEY_GATE, WIDTH), (VALUE_GATE, WIDTH)):
            both = sparse.key_maps[name].outward.weight.unflatten(0, (HEADS, 2, width))
            heavy.key_maps[name].outward.weight.copy_(both[:, 0].flatten(0, 1))
        for name in ("key_bias", "value_bias"):
            mine = getattr(sparse.variant, name)
            mine[:, :, 1] = -1e9
            getattr(heavy.variant, name).copy_(mine[:, :, :1])
    torch.testing.assert_close(sparse(x), heavy(x))
