import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.kept_bytes import state_bytes

variants.load_all()
DIM = 12


def built(selector="svformer", below=0):
    torch.manual_seed(below)
    return variants.build(selector, dim=DIM, regime="causal", layers_below=below).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def read_of(first, x):
    return first.answer_all(x, x, want_memory=True)[1].memory


def test_the_first_layer_is_multi_head_attention():
    first, plain = built(), built("mha")
    plain.load_state_dict(first.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(first(x), plain(x), rtol=0, atol=0)


def test_above_it_the_values_are_those_of_the_first_layer():
    first, second, plain = built(), built(below=1), built("mha")
    plain.load_state_dict({**first.state_dict(), **second.state_dict()})
    x = drawn(2, 7, DIM)
    # the same states in both layers, so that values are those that it would make itself
    torch.testing.assert_close(second(x, below=read_of(first, x)), plain(x))
    other = read_of(first, 2 * x)  # values of other states are other values of the same keys
    torch.testing.assert_close(second(x, below=other), 2 * plain(x))


def test_it_is_the_value_residual_without_own_values():
    first = built()
    shared, joined = built(below=1), built("value_residual[first=1,own=0,learned=false]", 1)
    joined.load_state_dict(shared.state_dict(), strict=False)
    x = drawn(2, 7, DIM)
    memory = read_of(first, drawn(2, 7, DIM, seed=2))
    torch.testing.assert_close(shared(x, below=memory), joined(x, below=memory))


def test_a_layer_above_the_first_keeps_keys_alone_and_has_no_map_to_values():
    layers = [built(below=n) for n in range(3)]
    counts = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    assert counts == [4 * DIM * DIM, 3 * DIM * DIM, 3 * DIM * DIM]
    x = drawn(2, 7, DIM)
    memory = read_of(layers[0], x)
    _, attended = layers[2].answer_all(x, x, below=memory)
    assert state_bytes([attended.state]) == 2 * 7 * DIM * 8
    assert attended.state.cache.source.value.shape == (2, 4, 7, 0)


def test_two_paths_from_one_state_do_not_disturb_each_other():
    first, second = built(), built(below=1)
    x, y = drawn(1, 6, DIM), drawn(1, 6, DIM, seed=2)
    with torch.no_grad():
        wanted = second(x, below=read_of(first, x))
        one, two, found = first.start(None, x), second.start(None, x), []
        for t in range(6):
            ends = []
            for states in (y, x):  # the path that goes on comes last
                own = (states[:, t : t + 1], None, None)
                _, below = first.attend(own[0], None, one, own=own, want_memory=True)
                output, above = second.attend(own[0], None, two, own=own, below=below.memory)
                ends.append((below.state, above.state))
            one, two = ends[-1]
            found.append(output)
    torch.testing.assert_close(torch.cat(found, 1), wanted)


def test_heads_divide_the_width():
    with pytest.raises(InvalidConfig, match="svformer: heads must divide the model width 12"):
        built("svformer[heads=5]")
