import pytest
import torch

from bench.timing import ceilings
from bench.timing.ceilings import CeilingSizes, measure_ceilings
from bench.timing.reason import Reason


class Constant:
    """Every call takes two milliseconds; it is made all the same."""

    def samples(self, work, count):
        work()
        return [2.0] * count


@pytest.fixture
def constant(monkeypatch):
    monkeypatch.setattr(ceilings, "timer_for", lambda device, name: Constant())
    monkeypatch.setattr(torch, "compile", lambda function, backend: function)


def test_a_ceiling_is_work_over_time(constant):
    sizes = CeilingSizes(matrix=8, elements=64, samples=3)
    found = measure_ceilings(torch.device("cpu"), sizes)
    assert found["matmul_float32_flops_per_s"] == pytest.approx(2 * 8**3 / 2e-3)
    assert found["copy_bytes_per_s"] == pytest.approx(2 * 64 * 2 / 2e-3)
    assert found["tanh_float32_per_s"] == pytest.approx(64 * 4 / 2e-3)


def test_a_ceiling_that_cannot_be_measured_leaves_the_others(constant, monkeypatch):
    def no_compiler(function, backend):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", no_compiler)
    found = measure_ceilings(torch.device("cpu"), CeilingSizes(matrix=8, elements=64, samples=3))
    assert isinstance(found["exp_float32_per_s"], Reason)
    assert isinstance(found["copy_bytes_per_s"], float)
