"""What cells share in a process, so that one that changes it is found and the others are not hit.

A variant or a task of others may set torch's threads or replace a function of torch. Then the
times and scores of everything after it change, and nothing says so.
"""

import gc
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from bench.api.patched_code import Code, code_of_process, undo_changes

VARIABLES = (
    "BENCH_CACHE_DIR",
    "BENCH_DATA_DIR",
    "CUDA_VISIBLE_DEVICES",
    "HF_DATASETS_OFFLINE",
    "HF_HUB_OFFLINE",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
"""Environment variables that decide numbers or times; libraries set others as they are loaded."""


@dataclass(frozen=True)
class Setting:
    """One thing that all code of a process shares."""

    name: str
    """As a sentence says it."""
    read: Callable[[], Any]
    write: Callable[[Any], object] | None
    """Puts an earlier value back; None where nothing can."""
    told: Literal["always", "of cells", "never"] = "always"
    """Whether a change is a failure; else it is only put back. Many libraries change some things
    when they are imported, and nothing is lost if that is undone."""


def _denormals_are_zero() -> bool:
    smallest = sys.float_info.min
    return smallest / 2 == 0


def _deterministic() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _modes() -> tuple[int, int]:
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def _attention_kernels() -> tuple[bool, ...]:
    kernels = torch.backends.cuda
    return (
        kernels.flash_sdp_enabled(),
        kernels.mem_efficient_sdp_enabled(),
        kernels.math_sdp_enabled(),
        kernels.cudnn_sdp_enabled(),
    )


def _set_attention_kernels(on: tuple[bool, bool, bool, bool]) -> None:
    flash, efficient, plain, cudnn = on
    torch.backends.cuda.enable_flash_sdp(flash)
    torch.backends.cuda.enable_mem_efficient_sdp(efficient)
    torch.backends.cuda.enable_math_sdp(plain)
    torch.backends.cuda.enable_cudnn_sdp(cudnn)


def _attribute(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    return (lambda: getattr(owner, name)), (lambda value: setattr(owner, name, value))


def _autocast(device: str) -> tuple[Setting, Setting]:
    """Whether autocast is on for a kind of device, and what it casts to."""
    return (
        Setting(
            f"autocast on {device}",
            partial(torch.is_autocast_enabled, device),
            partial(torch.set_autocast_enabled, device),
        ),
        Setting(
            f"the dtype of autocast on {device}",
            partial(torch.get_autocast_dtype, device),
            partial(torch.set_autocast_dtype, device),
        ),
    )


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _enter(folder: str) -> None:
    if folder:
        os.chdir(folder)


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def _set_variables(before: Mapping[str, str]) -> None:
    for name in _variables().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(before: Mapping[int, Any]) -> None:
    now = _handlers()
    for number, handler in before.items():
        if handler is not None and now[number] is not handler:
            signal.signal(number, handler)


def _numpy_draws() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002  the shared generator
    return (name, np.asarray(keys).tobytes(), *rest)


def _set_numpy_draws(before: tuple[Any, ...]) -> None:
    name, keys, *rest = before
    numbers = np.frombuffer(keys, dtype=np.uint32)
    np.random.set_state((name, numbers, *rest))  # noqa: NPY002  the shared generator


def _torch_draws() -> bytes:
    return torch.get_rng_state().numpy().tobytes()


def _set_torch_draws(before: bytes) -> None:
    torch.set_rng_state(torch.frombuffer(bytearray(before), dtype=torch.uint8))


def _errors_of_warnings() -> bool:
    return any(action == "error" for action, *_ in warnings.filters)


def _filters() -> list[Any]:
    return list(warnings.filters)


def _set_filters(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]  # a list, declared as a sequence
    warnings._filters_mutated()  # type: ignore[attr-defined]


SETTINGS = (
    Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting("torch's number of interop threads", torch.get_num_interop_threads, None),
    Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting(
        "the default device",
        torch.get_default_device,
        lambda device: torch.set_default_device(None if device.type == "cpu" else device),
    ),
    Setting("torch's function and dispatch modes", _modes, None),
    Setting("the grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("the inference mode", torch.is_inference_mode_enabled, None),
    *_autocast("cpu"),
    *_autocast("cuda"),
    Setting(
        "the anomaly mode",
        torch.is_anomaly_enabled,
        torch.autograd.set_detect_anomaly,
    ),
    Setting(
        "the use of deterministic algorithms",
        _deterministic,
        lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1]),
    ),
    Setting(
        "the precision of matrix products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    Setting("the treatment of denormal numbers", _denormals_are_zero, torch.set_flush_denormal),
    Setting("the choice of attention kernels", _attention_kernels, _set_attention_kernels),
    Setting(
        "the fast path of attention",
        torch.backends.mha.get_fastpath_enabled,
        torch.backends.mha.set_fastpath_enabled,
    ),
    Setting("the use of oneDNN", *_attribute(torch.backends.mkldnn, "enabled")),
    Setting("the benchmark mode of cuDNN", *_attribute(torch.backends.cudnn, "benchmark")),
    Setting("the deterministic mode of cuDNN", *_attribute(torch.backends.cudnn, "deterministic")),
    Setting("torch's random numbers", _torch_draws, _set_torch_draws, told="never"),
    Setting("NumPy's shared random numbers", _numpy_draws, _set_numpy_draws, told="of cells"),
    # type checkers of annotations draw from them whenever they check a list
    Setting("Python's shared random numbers", random.getstate, random.setstate, told="never"),
    Setting("environment variables", _variables, _set_variables, told="of cells"),
    Setting("the current folder", _folder, _enter),
    Setting("standard output", *_attribute(sys, "stdout")),
    Setting("standard error", *_attribute(sys, "stderr")),
    Setting("handlers of signals", _handlers, _set_handlers, told="of cells"),
    Setting("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("the switch interval of threads", sys.getswitchinterval, sys.setswitchinterval),
    Setting("the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting("that warnings are errors", _errors_of_warnings, None),
    Setting("the filters of warnings", _filters, _set_filters, told="never"),
)
"""In the order in which a sentence names them."""


@dataclass(frozen=True)
class ProcessState:
    """What the code of a process shared at one moment."""

    settings: Mapping[str, Any]
    code: Code

    @classmethod
    def now(cls) -> "ProcessState":
        """Look at this process."""
        return cls({one.name: one.read() for one in SETTINGS}, code_of_process())

    def undo(self, *, importing: bool = False) -> list[str]:
        """Put back what has changed since; what was not allowed to, as phrases of a sentence.

        Args:
            importing: Whether a module was imported in between, and no cell has run.
        """
        found = []
        for one in SETTINGS:
            before, after = self.settings[one.name], _read(one)
            if _same(before, after):
                continue
            if one.told == "always" or (one.told == "of cells" and not importing):
                found.append(_phrase(one.name, before, after))
            if one.write is not None:
                one.write(before)
        return found + undo_changes(self.code)


def _read(one: Setting) -> object:
    try:
        return one.read()
    except Exception as error:  # noqa: BLE001  what was changed may have broken this, too
        return error


def _same(before: object, after: object) -> bool:
    return before is after or (type(before) is type(after) and bool(before == after))


def _phrase(name: str, before: object, after: object) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(
            _key(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)
        )
        return f"{name} ({', '.join(names[:5])})"
    plain = (bool, int, float, torch.dtype, torch.device)
    if isinstance(before, plain) and isinstance(after, plain) and not isinstance(before, bool):
        return f"{name} from {before} to {after}"
    return name


def signal_name(number: int) -> str:
    """The name of a signal; real-time signals have a number alone.

    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _key(key: object) -> str:
    return signal_name(key) if isinstance(key, int) else str(key)
