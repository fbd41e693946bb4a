"""Short convolutions see a few states back, go on between calls, and are gated by what asks."""

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.conformance.suite import certify

NAME = "scaled_dot[head=short_convolution[{}]]"


def slot(options="heads=2", regime="causal"):
    torch.manual_seed(0)
    return variants.build(NAME.format(options), dim=8, regime=regime).double()


def drawn(length=9):
    return torch.randn(2, length, 8, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize("kernel", [2, 4])
def test_a_value_depends_on_as_many_states_as_the_kernel_has_taps(kernel):
    built, x = slot(f"heads=2,kernel={kernel}"), drawn().requires_grad_()
    _, source, _ = built.heads.own(x, None, None, built.start(None, x).heads)
    (gradient,) = torch.autograd.grad(source.value[:, :, 6].sum(), x)
    reached = gradient.abs().sum((0, 2)) > 0
    assert reached.tolist() == [6 - kernel < at <= 6 for at in range(9)]


def test_states_in_calls_of_any_length_are_convolved_as_if_they_were_one():
    built, x = slot(), drawn()
    whole = built(x)
    state, found = built.start(None, x), []
    for chunk in x.split((1, 2, 1, 5), 1):
        output, attended = built.attend(chunk, None, state, own=(chunk, None, None))
        state = attended.state
        found.append(output)
    assert torch.allclose(torch.cat(found, 1), whole, atol=1e-12)
    kept = state.heads["projected"]
    assert kept.shape == (2, 3, 24), "what is kept does not grow"


def test_one_tap_without_anything_else_is_plain_multi_head_attention():
    built = slot("heads=2,kernel=1,activation=none,norm=false,gate=none")
    torch.nn.init.ones_(built.heads.taps)
    plain = variants.build("scaled_dot[head=multi[heads=2]]", dim=8, regime="causal").double()
    named = dict(built.heads.named_parameters())
    plain.heads.load_state_dict({n: p for n, p in named.items() if n != "taps"})
    assert torch.allclose(built(drawn()), plain(drawn()), atol=1e-12)


def test_a_closed_gate_hides_what_is_read():
    built = slot("heads=2,gate=sigmoid")
    torch.nn.init.zeros_(built.heads.to_gate.weight)
    half = built(drawn())
    built.heads.to_gate = None
    assert torch.allclose(built(drawn()), 2 * half, atol=1e-12)


def test_values_may_be_wider_than_keys():
    built = slot("heads=2,expand=2")
    assert built.heads.dims.value_width == 2 * built.heads.dims.key_width
    assert built(drawn()).shape == (2, 9, 8)


def test_heads_of_values_may_share_queries_and_keys():
    """As if the maps and the convolutions of a shared head had been copied."""
    few, many = slot("heads=4,key_heads=2"), slot("heads=4")
    dims = few.heads.dims
    assert (dims.heads, dims.kv_heads, dims.num_value_heads) == (4, 2, 4)
    units = torch.arange(4).view(2, 2).repeat_interleave(2, 0).flatten()
    with torch.no_grad():
        for name in ("to_query", "to_key"):
            getattr(many.heads, name).weight.copy_(getattr(few.heads, name).weight[units])
        for name in ("to_value", "to_gate", "to_output"):
            getattr(many.heads, name).weight.copy_(getattr(few.heads, name).weight)
        taps = few.heads.taps.split(few.heads.widths)
        many.heads.taps.copy_(torch.cat((taps[0][units], taps[1][units], taps[2])))
    assert torch.allclose(few(drawn()), many(drawn()), atol=1e-12)
    state = few.attend(drawn(), None, few.start(None, drawn()), own=(drawn(), None, None))[1].state
    assert state.heads["projected"].shape[-1] == 2 * 4 + 8


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gated_deltanet", "mamba2_ssd", "retnet", "scaled_dot"])
def test_fewer_heads_of_keys_than_of_values_are_certified(mechanism):
    chosen = f"{mechanism}[head=short_convolution[heads=4,key_heads=2]]"
    found = certify(chosen)
    assert found.green(), found.failed


@pytest.mark.parametrize(
    "mechanism",
    [
        "differential",
        "talking_heads",
        "multi_token",
        "selective",
        "nsa",
        "path",
        "nadaraya_watson",
        "multi_dimensional",
        "memn2n",
        "act",
        "ntm_memory",
        "hopfield",
    ],
)
def test_loops_read_the_values_of_their_own_head_where_keys_are_shared(mechanism):
    chosen = f"{mechanism}[head=short_convolution[heads=4,key_heads=2]]"
    found = certify(chosen, checks=("oracle",))
    assert "oracle" in found.passed
    assert found.green(), found.failed


def test_heads_of_keys_divide_those_of_values():
    with pytest.raises(InvalidConfig, match="key_heads must divide heads=4, got 3"):
        slot("heads=4,key_heads=3")


def test_places_without_an_order_of_arrival_are_refused():
    with pytest.raises(Refused, match="needs a causal place"):
        slot(regime="self")
