import errno
import gc
import weakref

import pytest
import torch

from bench.api.cell import Cell
from bench.api.errors import Refused
from bench.running import runner
from bench.running.job import Job
from bench.running.runner import reason_of
from bench.timing import reason
from bench.timing.reason import Reason, attempt
from bench.timing.shape import AttendShape


def test_a_call_that_works_gives_what_it_gives():
    assert attempt(lambda: 3) == 3


def test_a_refusal_is_a_reason_and_an_interrupt_is_none():
    def refuses():
        raise Refused("a bridge too far")

    def interrupted():
        raise KeyboardInterrupt

    assert attempt(refuses) == Reason("refused", "a bridge too far")
    with pytest.raises(KeyboardInterrupt):
        attempt(interrupted)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 40000000000000 bytes. Error code 12"
            ),
            "40,000.0 GB were asked for at once",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has"),
            "0.021 GB were asked for at once",
        ),
        (
            RuntimeError("Storage size calculation overflowed with sizes=[4611686018427387904]"),
            "more was asked for at once than any machine has",
        ),
        (MemoryError("no more room"), "no more room"),
        (
            RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"),
            "CUDA error: out of memory CUDA kernel errors might be reported later",
        ),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "Triton Error [CUDA]: out of memory"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
        ),
        (
            RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
            "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        ),
    ],
)
def test_memory_that_was_asked_for_is_said_without_words_of_the_allocator(error, said):
    assert reason.reason_for(error) == Reason("out_of_memory", f"timing ran out of memory: {said}")
    assert reason_of(error) == Reason("out_of_memory", f"ran out of memory: {said}")


def test_a_reason_says_what_was_being_done():
    def ends(error):
        def call():
            raise error

        return attempt(call, "certifying").detail

    assert ends(MemoryError("no more room")) == "certifying ran out of memory: no more room"
    assert ends(ValueError("odd")) == "ValueError while certifying: odd"


def test_functions_of_torch_are_not_named():
    error = TypeError(
        'empty(): argument "size" failed to unpack\nException raised from THPUtils_unpackLong at '
        "/__w/python_numbers.h:79 (most recent call first):\nframe #0: c10::Error::Error"
    )
    said = 'TypeError while timing: empty(): argument "size" failed to unpack'
    assert reason.reason_for(error) == Reason("failed", said)
    assert reason_of(error).detail == 'TypeError: empty(): argument "size" failed to unpack'


def test_what_filled_the_memory_is_gone_when_the_memory_is_handed_back(monkeypatch):
    held = []

    def fills_the_memory():
        large = torch.zeros(1000)
        held.append(weakref.ref(large))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    seen = []
    monkeypatch.setattr(reason, "release_memory", lambda: seen.append(held[0]()))
    gc.disable()
    try:
        found = attempt(fills_the_memory)
    finally:
        gc.enable()
    assert found.status == "out_of_memory"
    assert seen == [None]


def test_a_full_disk_is_no_fault_of_the_code():
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    def missing():
        raise OSError(errno.ENOENT, "No such file")

    found, other = attempt(full), attempt(missing)
    assert isinstance(found, Reason)
    assert isinstance(other, Reason)
    assert (found.status, found.environmental) == ("failed", True)
    assert (other.status, other.environmental) == ("failed", False)


def test_a_timed_cell_tells_that_the_machine_ended_it(monkeypatch):
    cell = Cell(
        kind="speed",
        task=AttendShape().show(),
        backbone="",
        variant="dot",
        slot="cross",
        protocol="rounds",
    )
    full = Reason("failed", "the disk is full", environmental=True)
    monkeypatch.setattr(runner, "measure_block", lambda *_, **__: {cell.id: full})
    job = Job("speed", "dot", (cell,), reference=cell)
    (outcome,) = runner._measure(job, lambda share: None, 0.0).outcomes
    assert (outcome.status, outcome.environmental) == ("failed", True)
