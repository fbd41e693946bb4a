"""Whether the device that was asked for is on this machine, and which one it is."""

import torch

from bench.api.errors import InvalidConfig

NO_CUDA = "this machine has no CUDA device; choose --device cpu."


def refuse_missing_device(device: str) -> None:
    """Refuse a device that this machine does not have, before anything runs.

    Raises:
        InvalidConfig: The device is cuda, and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidConfig(NO_CUDA)


def device_name(device: str) -> str:
    """The model of a device that is there; empty for the processor."""
    return torch.cuda.get_device_name() if device == "cuda" else ""
