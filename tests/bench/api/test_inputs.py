"""Inputs of parts: maps with and without a narrow vector, shared by heads, and taught alone."""

import pytest
import torch

from bench.api.errors import Refused
from bench.api.inputs import InputMap, SlotInput, all_inputs

STATES, HEADS = 5, 3


def mapped(wanted, x):
    torch.manual_seed(0)
    made = InputMap(wanted, STATES, HEADS).double()
    return made, made(x)


def drawn():
    rng = torch.Generator().manual_seed(1)
    return torch.randn(2, 4, STATES, generator=rng, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize(("shared", "heads"), [(False, HEADS), (True, 1)])
def test_each_head_has_its_numbers_or_all_have_the_same(rank, shared, heads):
    x = drawn()
    made, found = mapped(SlotInput(7, rank, shared), x)
    assert found.shape == (2, 4, heads, 7)
    for row in range(2):
        for place in range(4):
            torch.testing.assert_close(found[row, place], made.oracle(x[row, place]))


def test_a_head_finds_its_own_numbers():
    assert [SlotInput(1).head(h) for h in range(HEADS)] == [0, 1, 2]
    assert [SlotInput(1, shared=True).head(h) for h in range(HEADS)] == [0, 0, 0]


@pytest.mark.parametrize("detached", [False, True])
def test_states_learn_nothing_from_a_detached_input(detached):
    x = drawn()
    made, found = mapped(SlotInput(2, detached=detached), x)
    looped = torch.stack([made.oracle(state) for state in x[0]])
    for output in (found, looped):
        x.grad = None
        made.zero_grad()
        output.square().sum().backward()
        assert (x.grad is None) == detached
        assert made.outward.weight.grad.abs().sum() > 0


def test_two_parts_that_want_one_name_are_refused_by_their_names():
    parts = {"position0": {"forget": SlotInput(1)}, "position1": {"forget": SlotInput(1)}}
    with pytest.raises(Refused, match="position0 and position1 both want an input 'forget'"):
        all_inputs(parts)
