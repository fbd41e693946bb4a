"""Every score component with several projected heads."""

import pytest
import torch

import variants
from bench.api import registry

variants.load_all()
SCORES = sorted(registry.registrations("score"))


@pytest.mark.parametrize("name", SCORES)
def test_the_head_axis_makes_any_score_multi_headed(name):
    slot = variants.build(f"{name}[head=multi[heads=2]]", dim=8, source_dim=6, regime="cross")
    x, y = torch.randn(2, 3, 8), torch.randn(2, 5, 6)
    memory = slot.prepare(y)
    output, attended = slot.attend(x, memory, slot.start(memory, x))
    assert output.shape == (2, 3, 8)
    assert attended.weights.shape == (2, 2, 3, 5)
    if name != "uniform":
        assert (attended.weights[:, 0] - attended.weights[:, 1]).abs().max() > 1e-6
