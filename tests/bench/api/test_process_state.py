"""What cells share in a process is named and put back when somebody changes it."""

import os
from functools import cached_property

import pytest
import torch

from bench.api.call import Call
from bench.api.cell import Cell
from bench.api.process_state import SETTINGS, ProcessState
from bench.api.source import Source
from bench.api.task import Task

CHANGES = {
    "torch's number of threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the default device": lambda: torch.set_default_device("meta"),
    "the grad mode": lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "autocast on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "the dtype of autocast on cpu": lambda: torch.set_autocast_dtype("cpu", torch.float16),
    "autocast on cuda": lambda: torch.set_autocast_enabled("cuda", True),
    "the dtype of autocast on cuda": lambda: torch.set_autocast_dtype("cuda", torch.bfloat16),
    "the anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "the use of deterministic algorithms": lambda: torch.use_deterministic_algorithms(
        True, warn_only=True
    ),
    "the precision of matrix products": lambda: torch.set_float32_matmul_precision("high"),
    "the choice of attention kernels": lambda: torch.backends.cuda.enable_math_sdp(False),
    "environment variables": lambda: os.environ.update(BENCH_DATA_DIR="elsewhere"),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_is_named_and_put_back(name):
    setting = next(one for one in SETTINGS if one.name == name)
    before, state = setting.read(), ProcessState.now()
    CHANGES[name]()
    try:
        assert setting.read() != before, "the change that this test makes"
        (phrase,) = state.undo()
        assert phrase.startswith(name)
        assert setting.read() == before
    finally:
        setting.write(before)
    assert state.undo() == []


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (Call, "allowed", property(lambda self: None)),
        (Source, "length", property(lambda self: None)),
        (Task, "is_generated", classmethod(lambda cls: True)),
        (Cell, "id", cached_property(lambda self: "0" * 12)),
        (Source, "with_key", lambda self, key: self),
    ],
)
def test_code_of_a_class_that_is_replaced_is_named_and_put_back(owner, name, other):
    before, state = vars(owner)[name], ProcessState.now()
    setattr(owner, name, other)
    try:
        assert state.undo() == [f"the code of {owner.__qualname__}.{name}"]
        assert vars(owner)[name] is before
    finally:
        setattr(owner, name, before)
