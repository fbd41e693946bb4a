"""The device that is timed, checked before; its facts stand in the environment of every row."""

import torch

from bench.api.errors import BenchError, Refused


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
