"""Weights of a trained network in a file, with the code and the data that made them."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from bench.api.errors import DataUnavailable
from bench.api.plain_text import message_of, shortened
from bench.api.whole_file import written_whole

MOST_OF_A_REASON = 200
"""Characters of what a library says of a file that it cannot load."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What made weights, as the record of their training says it (ADR 17)."""

    code: str = ""
    """Hash of the code; empty where no record is of the code and the data of today."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Hash of every data file that was read."""


def save_weights(system: torch.nn.Module, path: Path, origin: Origin) -> None:
    """Write weights and what made them, as a whole.

    Raises:
        OSError: The file cannot be written, as on a full disk.
    """
    from safetensors import SafetensorError  # noqa: PLC0415  an optional feature's library
    from safetensors.torch import save_model  # noqa: PLC0415  the same

    told = {"code": origin.code, "data": json.dumps(origin.data)}
    with written_whole(path) as draft:
        try:
            save_model(system, str(draft), metadata=told)
        except SafetensorError as error:
            # the library hides the system's error in a text, and a full disk is no fault of a cell
            number = re.search(r"os error (\d+)", str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def load_weights(system: torch.nn.Module, path: Path, device: torch.device, origin: Origin) -> None:
    """Put kept weights into a network.

    Args:
        system: The network.
        path: The file.
        device: Where the network is.
        origin: What must have made them.

    Raises:
        DataUnavailable: The file is damaged, holds the weights of another network, or something
            else made it.
    """
    from safetensors import SafetensorError  # noqa: PLC0415  an optional feature's library
    from safetensors.torch import load_model  # noqa: PLC0415  the same

    if not origin.code:
        raise DataUnavailable(
            f"the weights in {path} are of a cell without a result of the code and the data of "
            "today; train it again with --keep-models."
        )
    try:
        if _origin_of(path) != origin:
            raise DataUnavailable(
                f"the weights in {path} were not made by the code and the data of the stored "
                "result; delete the file, and train the cell with --keep-models into another --out."
            )
        load_model(system, str(path), device=str(device))
    except (SafetensorError, RuntimeError, OSError, ValueError) as error:
        why = shortened(message_of(error), MOST_OF_A_REASON)
        raise DataUnavailable(
            f"the weights in {path} cannot be loaded ({why}); delete the file, and train the cell "
            "with --keep-models into another --out."
        ) from error


def _origin_of(path: Path) -> Origin:
    """What the file says of itself; those of earlier versions say nothing."""
    from safetensors import safe_open  # noqa: PLC0415  an optional feature's library

    with safe_open(path, framework="pt") as file:
        told = file.metadata() or {}
    return Origin(code=told.get("code", ""), data=json.loads(told.get("data", "{}")))
