import pytest
import torch

import variants
from bench.api.errors import InvalidConfig

variants.load_all()
DIM = 12


def built(selector="value_residual", below=0):
    torch.manual_seed(below)
    return variants.build(selector, dim=DIM, regime="causal", layers_below=below).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def read_of(first, x):
    return first.answer_all(x, x, want_memory=True)[1].memory


def test_the_first_layer_is_multi_head_attention_and_has_no_shares():
    first, plain = built(), built("mha")
    plain.load_state_dict(first.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(first(x), plain(x), rtol=0, atol=0)


def test_golden_shares_of_two_values():
    # one key, so that the value itself is read
    first, second = built("value_residual[heads=1]"), built("value_residual[heads=1]", 1)
    x, y = drawn(1, 1, DIM), drawn(1, 1, DIM, seed=2)
    with torch.no_grad():
        for layer in (first, second):
            layer.heads.to_value.weight.copy_(torch.eye(DIM))
        second.heads.to_output.weight.copy_(torch.eye(DIM))
        torch.testing.assert_close(second(y, below=read_of(first, x)), 0.5 * x + 0.5 * y)
        second.heads.shares.copy_(torch.tensor([3.0, -1.0]))
        torch.testing.assert_close(second(y, below=read_of(first, x)), 3 * x - y)


@pytest.mark.parametrize("learned", ["true", "false"])
def test_with_the_shares_zero_and_one_it_is_multi_head_attention(learned):
    first = built()
    second = built(f"value_residual[first=0,own=1,learned={learned}]", 1)
    plain = built("mha", 1)
    plain.load_state_dict({n: w for n, w in second.state_dict().items() if "shares" not in n})
    x = drawn(2, 7, DIM)
    found = second(x, below=read_of(first, drawn(2, 7, DIM, seed=2)))
    torch.testing.assert_close(found, plain(x), rtol=0, atol=0)


def test_every_layer_reads_the_first_one_and_learns_its_shares():
    layers = [built(below=n) for n in range(4)]
    assert [layer.link and layer.link.layer for layer in layers] == [None, 0, 0, 0]
    counts = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    assert counts == [4 * DIM * DIM, *[4 * DIM * DIM + 2] * 3]
    fixed = built("value_residual[learned=false]", 1)
    assert sum(p.numel() for p in fixed.parameters()) == 4 * DIM * DIM


def test_the_cache_holds_values_that_are_joined_already():
    first, second = built(), built(below=1)
    x = drawn(2, 5, DIM)
    memory = read_of(first, x)
    _, attended = second.answer_all(x, x, below=memory)
    own = second.heads.source(x, None, None).value
    wanted = 0.5 * memory.source.value + 0.5 * own
    torch.testing.assert_close(attended.state.cache.source.value, wanted)


def test_heads_divide_the_width():
    with pytest.raises(InvalidConfig, match="value_residual: heads must divide the model width 12"):
        built("value_residual[heads=5]")
