import pytest
import torch

import variants
from bench.api.errors import InvalidConfig

variants.load_all()
DIM, HEADS = 12, 4


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def like(gated, plain):
    """The gated heads with the projections of the plain ones."""
    gated.load_state_dict(plain.state_dict(), strict=False)
    return gated


@pytest.mark.parametrize("gate", ["elementwise", "headwise"])
def test_a_gate_that_looks_at_nothing_halves_multi_head_attention(gate):
    plain = built("mha")
    gated = like(built(f"gated_attention[gate={gate}]"), plain)
    with torch.no_grad():
        gated.heads.to_gate.weight.zero_()
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(gated(x), plain(x) / 2)


def test_open_gates_are_multi_head_attention_and_a_closed_one_removes_its_head():
    plain = built("mha")
    gated = like(built("gated_attention[gate=headwise]"), plain)
    x = drawn(2, 7, DIM)
    x[..., 0] = 1.0  # a unit that gates can use as their bias
    with torch.no_grad():
        gated.heads.to_gate.weight.zero_()
        gated.heads.to_gate.weight[:, 0] = 1e3
        torch.testing.assert_close(gated(x), plain(x))
        gated.heads.to_gate.weight[2, 0] = -1e3
        plain.heads.to_output.weight[:, 2 * 3 : 3 * 3] = 0
        torch.testing.assert_close(gated(x), plain(x))


def test_the_gate_belongs_to_the_state_that_asks():
    gated = built("gated_attention", regime="cross")
    x, source = drawn(1, 3, DIM), drawn(1, 5, DIM, seed=2)
    memory = gated.prepare(source)
    _, answer = gated.attend(x, memory, gated.start(memory, x))
    gates = torch.sigmoid(x @ gated.heads.to_gate.weight.T)
    read = answer.output.transpose(1, 2).flatten(2)
    wanted = (read * gates) @ gated.heads.to_output.weight.T
    torch.testing.assert_close(gated(x, source), wanted)


def test_key_heads_are_shared_as_in_gqa():
    plain = built("gqa[kv_heads=2,qk_norm=rms]")
    gated = like(built("gated_attention[kv_heads=2,qk_norm=rms]"), plain)
    with torch.no_grad():
        gated.heads.to_gate.weight.zero_()
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(gated(x), plain(x) / 2)
    with pytest.raises(InvalidConfig, match="kv_heads must divide"):
        built("gated_attention[kv_heads=3]")
    with pytest.raises(InvalidConfig, match="heads must divide"):
        built("gated_attention[heads=5]")


@pytest.mark.parametrize(("gate", "numbers"), [("elementwise", DIM * DIM), ("headwise", 4 * DIM)])
def test_a_gate_costs_one_map(gate, numbers):
    gated, plain = built(f"gated_attention[gate={gate}]"), built("mha")
    counts = [sum(p.numel() for p in one.parameters()) for one in (gated, plain)]
    assert counts[0] - counts[1] == numbers
