import pytest
import torch

from bench.api.errors import BenchError, Refused
from bench.timing.device import open_device


def test_several_threads_are_an_error_that_says_what_to_do():
    torch.set_num_threads(2)
    with pytest.raises(BenchError, match=r"call torch\.set_num_threads\(1\) first"):
        open_device("cpu")


def test_an_absent_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Refused, match="no CUDA device"):
        open_device("cuda")


def test_an_unknown_device_is_refused():
    with pytest.raises(Refused, match="choose cpu or cuda"):
        open_device("abacus")
