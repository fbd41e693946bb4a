import pytest
import torch

from bench.api.errors import BenchError, Refused
from bench.measure.device import device_facts, open_device


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


def test_facts_of_the_processor_name_it_and_its_threads():
    facts = device_facts(open_device("cpu"))
    assert facts.kind == "cpu"
    assert facts.name
    assert facts.threads == 1
    assert facts.driver == ""
