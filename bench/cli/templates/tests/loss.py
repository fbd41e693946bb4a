import math

import pytest
import torch

from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.loss import LOSSES
from bench.api.registry import find, make
from bench.api.selector import parse


def test_golden_entropy_of_the_targets_that_are_scored(seen):
    rows = torch.tensor([[[[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]]], dtype=torch.float64)
    loss = make(LOSSES, parse("new_name[weight=0.1]"))
    term, carry = loss(seen(rows, mask=[[True, True, False]]), loss.init())
    assert term.item() == pytest.approx(0.1 * math.log(2) / 2)
    assert carry == {}


def test_a_key_without_weight_gives_a_finite_gradient(seen):
    rows = torch.tensor([[[[0.5, 0.5, 0.0]]]], dtype=torch.float64, requires_grad=True)
    loss = make(LOSSES, parse("new_name[weight=0.1]"))
    term, _ = loss(seen(rows), loss.init())
    (gradient,) = torch.autograd.grad(term, rows)
    slope = 0.1 * (math.log(2) - 1)
    assert gradient.flatten().tolist() == pytest.approx([slope, slope, 0.0])


def test_a_negative_weight_is_refused():
    with pytest.raises(InvalidConfig, match="weight must be above 0"):
        build_config(find("loss", "new_name").config, {"weight": -1.0}, "new_name")
