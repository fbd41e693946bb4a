import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig
from bench.api.loss import LossInputs
from bench.api.source import State
from bench.api.trace import Trace
from variants.losses.agreement_trace import AgreementTraceConfig, AgreementTraceLoss

EOS = 2


def side(weights, targets, mask=None):
    """What a loss sees of one direction, from weights `B H T S`."""
    targets = torch.tensor(targets)
    mask = torch.ones_like(targets, dtype=torch.bool) if mask is None else torch.tensor(mask)
    blank = torch.zeros(*targets.shape, 1, dtype=weights.dtype)
    trace = Trace(blank, blank, blank, (Attended(blank[:, None], weights, State(), {}),), (None,))
    return LossInputs(trace, torch.zeros(targets.shape), Batch((), targets, targets, mask), 0.5)


def bonus(there, back, gamma=1.0):
    """The bonus of a whole batch: what is earned a target word, times the target words."""
    words = (there.batch.mask.sum() + back.batch.mask.sum()) / 2
    return -AgreementTraceLoss(AgreementTraceConfig(gamma=gamma))(there, back) * words


AHEAD = torch.tensor([[[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]]], dtype=torch.float64)
BACK = torch.tensor([[[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]]], dtype=torch.float64)


def test_golden_trace():
    there, back = side(AHEAD, [[4, 5, 6]]), side(BACK, [[7, 8]])
    assert bonus(there, back).item() == pytest.approx(1.36)
    assert bonus(back, there).item() == pytest.approx(1.36)
    assert -bonus(there, back, gamma=0.1).item() == pytest.approx(-0.136)
    assert torch.trace(AHEAD[0, 0] @ BACK[0, 0]).item() == pytest.approx(1.36)


@pytest.mark.parametrize("source_has_eos", [False, True])
def test_eos_and_padding_count_for_nothing(source_has_eos):
    # two sentences: 3 words against 2, and 1 word against 1; targets end in EOS and padding
    wide, tall = (3, 4) if source_has_eos else (2, 3)
    rng = torch.Generator().manual_seed(0)
    ahead = torch.rand(2, 1, 4, wide, generator=rng, dtype=torch.float64)
    back = torch.rand(2, 1, 3, tall, generator=rng, dtype=torch.float64)
    ahead[0, 0, :3, :2], back[0, 0, :2, :3] = AHEAD[0, 0], BACK[0, 0]
    there = side(ahead, [[4, 5, 6, EOS], [4, EOS, 0, 0]], [[True] * 4, [True, True, False, False]])
    other = side(back, [[7, 8, EOS], [7, EOS, 0]], [[True] * 3, [True, True, False]])
    second = ahead[1, 0, 0, 0] * back[1, 0, 0, 0]
    assert bonus(there, other).item() == pytest.approx(1.36 + second.item())


def test_the_bonus_lies_between_zero_and_the_shorter_length():
    rng = torch.Generator().manual_seed(1)
    for length, width in ((3, 5), (5, 2), (4, 4)):
        ahead = torch.softmax(9 * torch.randn(1, 1, length, width, generator=rng), -1)
        back = torch.softmax(9 * torch.randn(1, 1, width, length, generator=rng), -1)
        found = bonus(side(ahead, [[5] * length]), side(back, [[6] * width])).item()
        assert 0 <= found <= min(length, width)
    eye = torch.eye(3)[None, None]
    assert bonus(side(eye, [[5] * 3]), side(eye, [[6] * 3])).item() == 3


@pytest.mark.parametrize("length", [4, 16])
def test_agreement_on_every_word_earns_gamma_a_word(length):
    eye = side(torch.eye(length)[None, None], [[5] * length])
    term = AgreementTraceLoss(AgreementTraceConfig(gamma=0.1))(eye, eye)
    assert term.item() == pytest.approx(-0.1)


def test_gradients_are_the_other_direction_and_zero_off_the_words():
    ahead = AHEAD.clone().requires_grad_()
    bonus(side(ahead, [[4, 5, EOS]]), side(BACK, [[7, 8]])).backward()
    torch.testing.assert_close(ahead.grad[0, 0, :2], BACK[0, 0].T[:2])
    assert not ahead.grad[0, 0, 2].any()


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        AgreementTraceConfig(gamma=-1.0)
