import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.source import State
from bench.api.trace import Trace
from variants.losses.agreement_l2 import AgreementL2Config, AgreementL2Loss

EOS = 2
AHEAD = torch.tensor([[[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]]], dtype=torch.float64)
BACK = torch.tensor([[[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]]], dtype=torch.float64)
APART = 0.2**2 + 0.0 + 0.0 + 0.2**2 + 0.4**2 + 0.2**2
"""Squares of the differences between AHEAD and the transpose of BACK."""


def side(weights, targets, mask=None):
    """What a loss sees of one direction, from weights `B H T S`."""
    targets = torch.tensor(targets)
    mask = torch.ones_like(targets, dtype=torch.bool) if mask is None else torch.tensor(mask)
    blank = torch.zeros(*targets.shape, 1, dtype=weights.dtype)
    trace = Trace(blank, blank, blank, (Attended(blank[:, None], weights, State(), {}),), (None,))
    return LossInputs(trace, torch.zeros(targets.shape), Batch((), targets, targets, mask), 0.5)


def apart(there, back, weight=1.0):
    """The penalty of a whole batch: what is paid a target word, times the target words."""
    words = (there.batch.mask.sum() + back.batch.mask.sum()) / 2
    return AgreementL2Loss(AgreementL2Config(weight=weight))(there, back) * words


def test_by_hand_and_the_same_from_both_sides():
    there, back = side(AHEAD, [[4, 5, 6]]), side(BACK, [[7, 8]])
    assert apart(there, back).item() == pytest.approx(APART)
    assert apart(back, there).item() == pytest.approx(APART)
    assert apart(there, back, weight=0.1).item() == pytest.approx(APART / 10)


def test_transposed_normalizers_agree_and_have_no_gradient():
    ahead = AHEAD.clone().requires_grad_()
    found = apart(side(ahead, [[4, 5, 6]]), side(AHEAD.transpose(2, 3), [[7, 8]]))
    found.backward()
    assert found.item() == 0
    assert not ahead.grad.any()


@pytest.mark.parametrize("source_has_eos", [False, True])
def test_eos_and_padding_count_for_nothing(source_has_eos):
    wide, tall = (3, 4) if source_has_eos else (2, 3)
    rng = torch.Generator().manual_seed(0)
    ahead = torch.rand(2, 1, 4, wide, generator=rng, dtype=torch.float64)
    back = torch.rand(2, 1, 3, tall, generator=rng, dtype=torch.float64)
    ahead[0, 0, :3, :2], back[0, 0, :2, :3] = AHEAD[0, 0], BACK[0, 0]
    there = side(ahead, [[4, 5, 6, EOS], [4, EOS, 0, 0]], [[True] * 4, [True, True, False, False]])
    other = side(back, [[7, 8, EOS], [7, EOS, 0]], [[True] * 3, [True, True, False]])
    second = (ahead[1, 0, 0, 0] - back[1, 0, 0, 0]).item() ** 2
    assert apart(there, other).item() == pytest.approx(APART + second)


def test_it_is_the_squared_norms_minus_twice_the_trace():
    """What it has in common with the trace bonus, and what it charges for beside."""
    trace = torch.trace(AHEAD[0, 0] @ BACK[0, 0]).item()
    norms = AHEAD.square().sum().item() + BACK.square().sum().item()
    found = apart(side(AHEAD, [[4, 5, 6]]), side(BACK, [[7, 8]])).item()
    assert found == pytest.approx(norms - 2 * trace)
    assert trace == pytest.approx(1.36)


def test_the_recipe_trains_both_directions_with_it():
    assert resolve("agreement_l2").fixes["direction"].show() == (
        "both[joint=agreement_l2[weight=1.0]]"
    )
    spec = resolve("agreement_l2[joint=agreement_l2[weight=0.5]]")
    assert spec.fixes["direction"].show() == "both[joint=agreement_l2[weight=0.5]]"


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        AgreementL2Config(weight=-1.0)
