"""Whether the device that was asked for is on this machine, and which one it is."""

import torch

from bench.api.errors import InvalidConfig

NONE_HERE = "this machine has no CUDA device"
NO_CUDA = f"{NONE_HERE}; choose --device cpu."


def refuse_missing_device(device: str, instead: str = "choose --device cpu.") -> None:
    """Refuse a device that this machine does not have, before anything runs.

    Args:
        device: `cpu` or `cuda`.
        instead: What to do, the end of the sentence.

    Raises:
        InvalidConfig: The device is cuda, and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidConfig(f"{NONE_HERE}; {instead}")


def device_name(device: str) -> str:
    """The model of a device that is there; empty for the processor."""
    return torch.cuda.get_device_name() if device == "cuda" else ""
