import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused

variants.load_all()
DIM, HEADS, WIDTH = 12, 4, 3


def built(selector="cla", below=0, **place):
    torch.manual_seed(below)
    given = {"regime": "causal", "layers_below": below, **place}
    return variants.build(selector, dim=DIM, **given).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def test_the_first_layer_is_multi_head_attention():
    first, plain = built(), built("mha")
    plain.load_state_dict(first.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(first(x), plain(x), rtol=0, atol=0)


def test_golden_two_places_read_the_values_of_the_layer_below():
    # equal keys below, so each query reads the mean of what came so far
    first, second = built("cla[heads=1]"), built("cla[heads=1]", 1)
    x, y = drawn(1, 2, DIM), drawn(1, 2, DIM, seed=2)
    with torch.no_grad():
        first.heads.to_key.weight.zero_()
        first.heads.to_value.weight.copy_(2 * torch.eye(DIM))
        second.heads.to_output.weight.copy_(torch.eye(DIM))
        read = first.answer_all(x, x, want_memory=True)[1].memory
        found = second(y, below=read)
    torch.testing.assert_close(found[0, 0], 2 * x[0, 0])
    torch.testing.assert_close(found[0, 1], x[0, 0] + x[0, 1])


@pytest.mark.parametrize(
    ("sharing", "read"), [(2, [None, 0, None, 2, None]), (3, [None, 0, 0, None, 3])]
)
def test_the_lowest_layer_of_a_group_makes_keys_and_values_for_it(sharing, read):
    layers = [built(f"cla[sharing={sharing}]", n) for n in range(5)]
    assert [layer.link and layer.link.layer for layer in layers] == read
    own = ["heads.to_key.weight" in layer.state_dict() for layer in layers]
    assert own == [layer is None for layer in read]


def test_queries_and_their_order_are_those_of_the_layer_itself():
    first, second = built("rope[head=cla]"), built("rope[head=cla]", 1)
    plain = built("rope[head=multi]")
    state = {**first.state_dict(), **second.state_dict()}
    plain.load_state_dict(state)
    x = drawn(2, 7, DIM)
    read = first.answer_all(x, x, want_memory=True)[1].memory
    # the same states in both layers, so that keys are those that it would make itself
    torch.testing.assert_close(second(x, below=read), plain(x))


def test_key_heads_are_shared_as_in_gqa():
    first, plain = built("cla[kv_heads=1]"), built("gqa[kv_heads=1]")
    plain.load_state_dict(first.state_dict())
    x = drawn(2, 7, DIM)
    torch.testing.assert_close(first(x), plain(x), rtol=0, atol=0)


def test_decoding_keeps_nothing_above_the_first_layer():
    first, second = built(), built(below=1)
    x = drawn(2, 7, DIM)
    read = first.answer_all(x, x, want_memory=True)[1].memory
    wanted = second(x, below=read)
    state, one, found = second.start(None, x), first.start(None, x), []
    with torch.no_grad():
        for t in range(7):
            own = (x[:, t : t + 1], None, None)
            _, attended = first.attend(own[0], None, one, own=own, want_memory=True)
            one = attended.state
            output, attended = second.attend(own[0], None, state, own=own, below=attended.memory)
            state = attended.state
            found.append(output)
    assert state.cache is None
    assert state.offset == 7
    torch.testing.assert_close(torch.cat(found, 1), wanted)


def test_padding_is_that_of_the_layer_below():
    first, second = built(), built(below=1)
    x, mask = drawn(2, 7, DIM), torch.arange(7) < torch.tensor([[7], [4]])
    read = first.answer_all(x, x, mask, want_memory=True)[1].memory
    whole = second(x, below=read)
    alone = first.answer_all(x[1:, :4], x[1:, :4], want_memory=True)[1].memory
    torch.testing.assert_close(whole[1:, :4], second(x[1:, :4], below=alone))


@pytest.mark.parametrize("options", ["kv_heads=3", "heads=5", "heads=0"])
def test_heads_that_do_not_divide_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"must divide|must be at least 1"):
        built(f"cla[{options}]")


def test_sharing_counts_a_layer_at_least():
    with pytest.raises(InvalidConfig, match="sharing must be at least 1, got 0"):
        built("cla[sharing=0]")


def test_a_layer_that_is_read_must_be_handed_on():
    second = built(below=1)
    with pytest.raises(Refused, match="this layer reads layer 0; hand on"):
        second(drawn(1, 3, DIM))
    with pytest.raises(Refused, match="cla needs a stack of layers that hand on their keys"):
        variants.build("cla", dim=DIM, regime="causal")
    with pytest.raises(Refused, match="a stack of causal self-attention"):
        built(regime="self")
    with pytest.raises(InvalidConfig, match="layers_below must be a whole number of at least 0"):
        built(below=-1)
