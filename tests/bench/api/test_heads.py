"""What heads remember of earlier states where some of them are padding."""

import pytest
import torch

import variants
from bench.api.heads import last_real, without_padding

STATEFUL = ("canon", "scaled_dot[head=short_convolution]", "fox_pro")


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def built(selector):
    """A slot of width 8 whose parameters are moved off their start."""
    slot = variants.build(selector, dim=8, regime="causal").double().eval()
    with torch.no_grad():
        for seed, parameter in enumerate(slot.parameters()):
            parameter.add_(0.3 * drawn(*parameter.shape, seed=seed))
    return slot


def made(slot, x, mask=None, past=None):
    """Queries, keys and values of some states, and what is remembered of them."""
    past = slot.start(None, x).heads if past is None else past
    query, source, past = slot.heads.own(x, mask, None, past)
    return torch.cat((query, source.key, source.value), -1), past


@pytest.mark.parametrize("shape", [(3, 6, 2), (3, 2, 6, 1)])
def test_the_last_real_states_are_those_of_a_loop(shape):
    x, count = drawn(*shape), 2
    mask = torch.tensor([[True, False, True, False], [False] * 4, [True] * 4])
    found = last_real(x, mask, count)
    for row in range(3):
        places = [*range(count), *(count + p for p in range(4) if mask[row, p])][-count:]
        assert torch.equal(found[row], x[row][..., places, :])
    assert torch.equal(last_real(x, None, count), x[..., -count:, :])
    assert last_real(x, None, 0).shape[-2] == last_real(x, mask, 0).shape[-2] == 0


def test_states_of_padding_are_zero_and_get_no_gradient():
    x = drawn(1, 3, 2).requires_grad_()
    mask = torch.tensor([[True, False, True]])
    found = without_padding(x, mask)
    found.sum().backward()
    assert torch.equal(found[0, ::2], x[0, ::2])
    assert not found[0, 1].any()
    assert not x.grad[0, 1].any()
    assert without_padding(x, None) is x


@pytest.mark.parametrize("selector", STATEFUL)
def test_padding_behind_a_prompt_leaves_what_is_remembered(selector):
    slot, x, new = built(selector), drawn(3, 7, 8), drawn(3, 1, 8, seed=1)
    lengths = (7, 2, 5)
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    found, _ = made(slot, new, past=made(slot, x, mask)[1])
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        alone, _ = made(slot, new[one], past=made(slot, x[one, :length])[1])
        torch.testing.assert_close(found[one], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", STATEFUL)
def test_padding_in_front_counts_as_nothing(selector):
    slot, x = built(selector), drawn(1, 7, 8)
    mask = torch.arange(7)[None] >= 3
    found, kept = made(slot, x, mask)
    alone, wanted = made(slot, x[:, 3:])
    torch.testing.assert_close(found[:, :, 3:], alone, rtol=0, atol=1e-12)
    for name, one in kept.items():
        torch.testing.assert_close(one, wanted[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", STATEFUL)
def test_a_mask_that_hides_nothing_changes_no_bit(selector):
    slot, x = built(selector), drawn(2, 7, 8)
    found, kept = made(slot, x, torch.ones(2, 7, dtype=torch.bool))
    plain, wanted = made(slot, x)
    assert torch.equal(found, plain)
    assert all(torch.equal(one, wanted[name]) for name, one in kept.items())
