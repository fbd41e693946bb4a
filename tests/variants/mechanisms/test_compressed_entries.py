import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.kept_bytes import state_bytes
from variants.lightning_indexer import KL
from variants.mechanisms.compressed_entries import compress

variants.load_all()
DIM, HEADS, DOUBLE = 8, 2, 8
CSA, HCA = "csa[block=3,chosen=2,window=4,index_width=6]", "hca[block=3,window=4]"


def built(selector, heads=HEADS, **place):
    torch.manual_seed(0)
    place = {"regime": "causal", "attention_only": True, **place}
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


def asked(attention, x, parts=None, **call):
    """Output, terms and last state of a sequence that comes in parts."""
    state, outputs, terms = attention.start(None, x), [], []
    for one in x.split(parts or x.shape[1], 1):
        output, answer = attention.attend(one, None, state, own=(one, None, None), **call)
        state = answer.state
        outputs.append(output)
        terms.append(answer.terms.get(KL, output[..., 0]))
    return torch.cat(outputs, 1), torch.cat(terms, 1), state


def all_real(x):
    return torch.ones(x.shape[0], x.shape[2], dtype=torch.bool)


def test_without_gates_an_entry_is_the_mean_of_its_block():
    x = drawn(2, 3, 12, 5)
    gate, bias = torch.zeros_like(x), torch.zeros(3, 4, 1, 5).double()
    found = compress(x, gate, bias, all_real(x), first=True)
    torch.testing.assert_close(found, x.unflatten(2, (3, 4)).mean(3))


def test_without_gates_an_overlapping_entry_is_the_mean_of_two_blocks():
    x = drawn(2, 3, 12, 5)
    gate, bias = torch.zeros(2, 3, 12, 10).double(), torch.zeros(3, 4, 2, 5).double()
    found = compress(x, gate, bias, all_real(x), first=True)
    wanted = torch.stack((x[:, :, :4].mean(2), x[:, :, :8].mean(2), x[:, :, 4:].mean(2)), 2)
    torch.testing.assert_close(found, wanted)
    later = compress(x, gate, bias, all_real(x), first=False)
    torch.testing.assert_close(later, wanted[:, :, 1:])


def test_each_number_of_an_entry_has_weights_of_its_own():
    """By hand: of the first numbers the second key's, of the others a third of the first key's."""
    x = torch.tensor([[[[1.0, 2.0], [4.0, 8.0]]]]).double()
    gate = torch.tensor([[[[0.0, 0.0], [90.0, 0.0]]]]).double()
    bias = torch.zeros(1, 2, 1, 2).double()
    bias[0, 1, 0, 1] = math.log(2.0)
    found = compress(x, gate, bias, all_real(x), first=True)
    torch.testing.assert_close(found, torch.tensor([[[[4.0, (2 + 2 * 8) / 3]]]]).double())


@pytest.mark.parametrize("series", [1, 2])
def test_what_is_not_real_is_in_no_entry(series):
    x, gate = drawn(1, 2, 6, 4), drawn(1, 2, 6, 4 * series, seed=2)
    bias = drawn(2, 3, series, 4, seed=3)
    real = torch.tensor([[True, True, True, True, False, False]])
    spoiled = [torch.where(real[:, None, :, None], y, float("nan")) for y in (x, gate)]
    found = compress(*spoiled, bias, real, first=True)
    assert found.isfinite().all()
    torch.testing.assert_close(found, compress(x, gate, bias, real, first=True))
    other = compress(x + (~real)[:, None, :, None], gate, bias, real, first=True)
    torch.testing.assert_close(found, other)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("selector", [CSA, HCA, "csa[block=1]", "hca[block=2,window=1]"])
def test_vectorized_code_equals_the_loops(equals_oracle, selector, padded):
    equals_oracle(selector, "causal", padded=padded, keys=11)
    if selector == CSA:
        equals_oracle(selector, "causal", padded=padded, keys=11, progress=0.1)


@pytest.mark.parametrize("selector", [CSA, HCA, "csa[block=5,window=2]", "hca[block=7,window=1]"])
@pytest.mark.parametrize("parts", [1, 2, 5, [4, 1, 1, 9, 2]])
def test_decoding_equals_all_at_once(selector, parts):
    attention, x = shuffled(built(selector)), drawn(2, 17, DIM)
    whole, pieces = asked(attention, x), asked(attention, x, parts)
    for one, two in zip(whole[:2], pieces[:2], strict=True):
        torch.testing.assert_close(one, two)
    assert state_bytes([whole[2]]) == state_bytes([pieces[2]])


@pytest.mark.parametrize("name", ["csa", "hca"])
def test_before_a_block_is_closed_it_is_a_sliding_window(name):
    attention = shuffled(built(f"{name}[block=20,window=5]"))
    window = built("sliding_window[window=5]")
    window.heads.load_state_dict(attention.heads.state_dict())
    x = drawn(2, 15, DIM)
    torch.testing.assert_close(attention(x), window(x))


@pytest.mark.parametrize("name", ["csa", "hca"])
def test_closed_blocks_are_read_from_their_last_key_on(name):
    attention, x = shuffled(built(f"{name}[block=4,window=2]")), drawn(1, 12, DIM)
    window = built("sliding_window[window=2]")
    window.heads.load_state_dict(attention.heads.state_dict())
    apart = (attention(x) - window(x)).abs().amax(-1)[0]
    assert float(apart[:3].detach().max()) < 1e-12
    assert float(apart[3:].detach().min()) > 1e-6


@pytest.mark.parametrize("length", [1, 5, 6, 17, 18])
@pytest.mark.parametrize("window", [2, 10])
def test_the_state_has_entries_the_window_and_what_open_blocks_need(length, window):
    block, index = 3, 6
    vector = 2 * DIM  # a key and a value, all heads together
    with torch.no_grad():
        heavy = asked(built(f"hca[block={block},window={window}]"), drawn(1, length, DIM), 1)[2]
        sparse = asked(
            built(f"csa[block={block},window={window},index_width={index}]"),
            drawn(1, length, DIM),
            1,
        )[2]
    entries, still = length // block, length % block
    near = max(still, min(window - 1, length))
    numbers = entries * vector + near * vector + still * vector  # gates are as wide as vectors
    assert state_bytes([heavy]) == numbers * DOUBLE
    still += block if entries else 0
    near = max(still, min(window - 1, length))
    numbers = entries * (vector + index) + near * vector
    numbers += still * (2 * vector + index + 2 * index)
    assert state_bytes([sparse]) == numbers * DOUBLE


@pytest.mark.parametrize("head", ["gqa[heads=2,kv_heads=1]", "gqa[heads=4,kv_heads=2]"])
@pytest.mark.parametrize("name", [CSA, HCA])
def test_heads_may_share_keys(equals_oracle, name, head):
    equals_oracle(f"{name[:-1]},head={head}]", "causal", heads=None, keys=11)


def test_sizes_and_places_that_make_no_sense_are_refused():
    for options in ("csa[block=0]", "hca[window=0]"):
        with pytest.raises(InvalidConfig, match=r"(block|window) must be at least 1, got 0"):
            built(options)
    with pytest.raises(Refused, match="earlier keys"):
        built("hca", regime="self")
    with pytest.raises(Refused, match="hca has no impl=sdpa"):
        built("hca", impl="sdpa")
