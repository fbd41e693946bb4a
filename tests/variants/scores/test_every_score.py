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


@pytest.mark.parametrize("size", [0.0, 1e-4])
@pytest.mark.parametrize("name", SCORES)
def test_half_precision_has_an_answer_to_a_query_of_zeros_or_of_small_numbers(name, size):
    """Squares of such numbers, and what is added to them, are zero in float16."""
    torch.manual_seed(0)
    attention = variants.build(name, dim=8, heads=2, source_dim=6, regime="cross")
    x, y = size * torch.randn(2, 3, 8), torch.randn(2, 5, 6)
    with torch.no_grad():
        wanted, found = attention(x, y), attention.half()(x.half(), y.half())
    torch.testing.assert_close(found.float(), wanted, rtol=0.02, atol=0.02)
