"""What is computed in which precision: parameters in one, products in another."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from bench.api.cell import Cell

HALVES = ("bfloat16",)
"""Formats that are for products alone; an update of a parameter is smaller than their rounding."""


def place(system: nn.Module, cell: Cell) -> nn.Module:
    """Move a system to the device of its cell, its parameters in float32 where they train in half.

    Returns:
        The same module.
    """
    stored = torch.float32 if cell.dtype in HALVES else getattr(torch, cell.dtype)
    return system.to(device=torch.device(cell.device), dtype=stored)


def computing(cell: Cell) -> AbstractContextManager[object]:
    """Where a network answers: under autocast in half precision, which PyTorch's rules choose."""
    if cell.dtype not in HALVES:
        return nullcontext()
    return torch.autocast(cell.device, dtype=getattr(torch, cell.dtype))
