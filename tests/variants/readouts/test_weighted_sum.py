import pytest
import torch

from bench.api.resolve import resolve


def test_golden_context(read, golden):
    weights = torch.tensor([0.401112, 0.197776, 0.401112], dtype=torch.float64).view(1, 1, 1, 3)
    found = read("weighted_sum", weights, golden.source).flatten()
    assert found.tolist() == pytest.approx([1.604448, 1.598888], abs=1e-6)


def test_it_is_what_a_chain_does_that_says_nothing_else():
    spec = resolve("scaled_dot")
    assert [s.show() for s in spec.axes["readout"]] == ["weighted_sum"]
    assert spec.canonical == resolve("scaled_dot[readout=weighted_sum]").canonical


def test_equal_values_are_read_as_they_are_and_the_answer_lies_between_them(read, weigh, draw):
    source = draw(2, 2, 4, 6, lengths=()).source
    found = read("weighted_sum", weigh(2, 2, 4, 6), source)
    low, high = source.value.amin(2, keepdim=True), source.value.amax(2, keepdim=True)
    assert ((found >= low) & (found <= high)).all()
    source.value[:] = 3.0
    assert read("weighted_sum", weigh(2, 2, 4, 6), source).sub(3).abs().max() < 1e-12
