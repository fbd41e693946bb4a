"""The device that is timed: checks before and facts for the record."""

import time
from dataclasses import dataclass

import torch

from bench.api.errors import BenchError, Refused
from results.environment import collect


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """What a reader must know of the device to judge a time."""

    kind: str
    """`cpu` or `cuda`."""
    name: str
    """Model of the processor or GPU."""
    threads: int
    """Threads torch may use for one operation."""
    capability: str
    """Vector instructions of a CPU (`AVX512`), compute capability of a GPU (`9.0`)."""
    driver: str = ""
    """Version of the GPU driver."""
    cache_bytes: int = 0
    """L2 cache of a GPU; 0 where torch does not say."""
    clock_step_s: float = 0.0
    """Smallest step of the default clock."""


def open_device(kind: str) -> torch.device:
    """Check that cells of this device kind can be timed here.

    Raises:
        Refused: There is no such device.
        BenchError: Torch may use several threads on a CPU, which times the machine's other load.
    """
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise Refused("this machine has no CUDA device; choose --device cpu.")
        return torch.device("cuda", torch.cuda.current_device())
    if kind != "cpu":
        raise Refused(f"there is no timer for device {kind!r}; choose cpu or cuda.")
    if torch.get_num_threads() != 1:
        raise BenchError(
            f"timing on a CPU needs one thread, torch has {torch.get_num_threads()}; "
            "call torch.set_num_threads(1) first."
        )
    return torch.device("cpu")


def device_facts(device: torch.device) -> DeviceFacts:
    """Collect the facts."""
    threads = torch.get_num_threads()
    found = collect(threads)
    step = time.get_clock_info("perf_counter").resolution
    if device.type == "cuda":
        return DeviceFacts(
            kind="cuda",
            name=found.gpu,
            threads=threads,
            capability=found.gpu_capability,
            driver=found.gpu_driver,
            cache_bytes=torch.cuda.get_device_properties(device).L2_cache_size,
            clock_step_s=step,
        )
    return DeviceFacts(
        kind="cpu",
        name=found.cpu,
        threads=threads,
        capability=found.aten_cpu_capability,
        clock_step_s=step,
    )
