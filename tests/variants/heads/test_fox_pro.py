import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

DIM, HEADS = 12, 4
WIDTH = DIM // HEADS
NEAR = {"rtol": 0, "atol": 1e-12}


def built(selector, dim=DIM):
    torch.manual_seed(0)
    return variants.build(selector, dim=dim, regime="causal").double().eval()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def rms(x):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def test_it_is_the_block_of_the_paper():
    attention = built("fox_pro")
    heads, x = attention.heads, drawn(7, DIM)
    with torch.no_grad():
        for seed, gain in enumerate((heads.gain, heads.norm.query_gain, heads.norm.key_gain)):
            gain.copy_(drawn(*gain.shape, seed=seed + 5))
    shares = torch.sigmoid(x @ heads.to_shares.weight.T)
    forget = x @ attention.key_maps["forget"].outward.weight.T + attention.variant.positions[0].bias
    total = torch.nn.functional.logsigmoid(forget).cumsum(0)
    read = []
    for h in range(HEADS):
        own = slice(h * WIDTH, (h + 1) * WIDTH)
        query, key, value = (
            x @ getattr(heads, name).weight[own].T for name in ("to_query", "to_key", "to_value")
        )
        for made, at in ((key, h), (value, HEADS + h)):
            share, old = shares[:, at : at + 1], made.clone()
            made[0] = (1 - share[0]) * old[0]
            made[1:] = share[1:] * old[:-1] + (1 - share[1:]) * old[1:]
        query, key = rms(query) * heads.norm.query_gain, rms(key) * heads.norm.key_gain
        energy = query @ key.T / WIDTH**0.5 + total[:, h, None] - total[None, :, h]
        future = torch.ones(7, 7, dtype=torch.bool).triu(1)
        found = torch.softmax(energy.masked_fill(future, -torch.inf), -1) @ value
        read.append(rms(found) * heads.gain[h] * torch.sigmoid(x @ heads.to_gate.weight[own].T))
    wanted = torch.cat(read, -1) @ heads.to_output.weight.T
    torch.testing.assert_close(attention(x[None])[0], wanted)


def test_without_its_parts_it_is_forgetting_attention():
    bare = built("fox_pro[shift=false,qk_norm=false,norm=false,gate=false]")
    plain = built(f"fox[head=multi[heads={HEADS},bias=false]]")
    plain.load_state_dict(bare.state_dict())
    x = drawn(2, 9, DIM)
    torch.testing.assert_close(bare(x), plain(x), **NEAR)


def test_golden_shift_by_half():
    """Shares of one half: (0 + 2) / 2, (2 + 4) / 2, (4 + 8) / 2."""
    attention = built("fox_pro[heads=1,qk_norm=false]", dim=2)
    heads = attention.heads
    with torch.no_grad():
        heads.to_shares.weight.zero_()
        heads.to_key.weight.copy_(torch.eye(2))
    x = torch.tensor([[[2.0, 1.0], [4.0, 1.0], [8.0, 1.0]]], dtype=torch.float64)
    _, source, kept = heads.own(x, None, None, attention.start(None, x).heads)
    assert source.key[0, 0].tolist() == [[1.0, 0.5], [3.0, 1.0], [6.0, 1.0]]
    assert kept["key"].tolist() == [[[[8.0, 1.0]]]]


@pytest.mark.parametrize("options", ["", "shift=false", "norm=false,gate=false", "qk_norm=false"])
@pytest.mark.parametrize("split", [[1] * 9, [4, 1, 4]])
def test_calls_of_any_length_continue_the_shift(options, split):
    attention, x = built(f"fox_pro[{options}]" if options else "fox_pro"), drawn(2, 9, DIM)
    state, found = attention.start(None, x), []
    for part in x.split(split, 1):
        output, answer = attention.attend(part, None, state, own=(part, None, None))
        state = answer.state
        found.append(output)
    torch.testing.assert_close(torch.cat(found, 1), attention(x), **NEAR)


def test_sizes_and_places_without_a_meaning_are_refused():
    with pytest.raises(InvalidConfig, match="fox_pro: heads must divide"):
        built("fox_pro[heads=5]")
    for regime in ("cross", "self", "pool"):
        with pytest.raises(Refused, match="causal place"):
            variants.build("scaled_dot[head=fox_pro]", dim=DIM, regime=regime)
