import gc

import pytest
import torch

from bench.timing.timer import CpuTimer, CudaTimer, timer_for


def test_a_sample_is_the_time_between_two_readings_in_milliseconds():
    readings = iter([0.0, 0.002, 1.0, 1.005])
    assert CpuTimer(lambda: next(readings)).samples(lambda: None, 2) == pytest.approx([2.0, 5.0])


def test_no_garbage_is_collected_inside_a_sample_and_collection_comes_back():
    seen = []
    CpuTimer(lambda: 0.0).samples(lambda: seen.append(gc.isenabled()), 3)
    assert seen == [False, False, False]
    assert gc.isenabled()


def test_collection_comes_back_after_a_failure():
    with pytest.raises(ZeroDivisionError):
        CpuTimer(lambda: 0.0).samples(lambda: 1 / 0, 1)
    assert gc.isenabled()


class Stream:
    """Stands for torch.cuda and writes down what is queued."""

    def __init__(self):
        self.queued = []

    def synchronize(self):
        self.queued.append("wait")

    def _sleep(self, cycles):
        self.queued.append("sleep" if cycles > 0 else "no sleep")

    def Event(self, enable_timing):  # noqa: N802  # torch's name
        stream = self

        class Mark:
            def record(self):
                stream.queued.append("event")

            def elapsed_time(self, last):
                assert stream.queued[-1] == "wait", "read before the stream was done"
                return 2.5

        return Mark()


def test_on_a_gpu_everything_is_queued_behind_a_sleep_before_anyone_waits():
    stream, ticks = Stream(), iter(range(100))
    timer = CudaTimer(lambda: next(ticks) * 1e-3, stream)
    assert timer.samples(lambda: stream.queued.append("work"), 2) == [2.5, 2.5]
    sample = ["sleep", "event", "work", "event"]
    assert stream.queued == ["wait", "work", "wait", *sample, *sample, "wait"]


def test_no_garbage_is_collected_inside_a_sample_of_a_gpu():
    stream, seen = Stream(), []
    CudaTimer(lambda: 0.0, stream).samples(lambda: seen.append(gc.isenabled()), 3)
    assert seen[1:] == [False, False, False]
    assert gc.isenabled()


def test_the_protocol_names_the_clock_and_an_injected_one_replaces_it():
    cpu = torch.device("cpu")
    assert timer_for(cpu, "cpu").clock.__name__ == "process_time"
    assert timer_for(cpu, "wall").clock.__name__ == "perf_counter"
    assert timer_for(torch.device("cuda"), "cpu").clock.__name__ == "perf_counter"

    def clock():
        return 0.0

    assert timer_for(cpu, "cpu", clock).clock is clock
