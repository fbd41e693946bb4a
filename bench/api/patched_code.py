"""Functions of torch, of Python and of the bench itself that somebody replaced at run time."""

import builtins
import copy
import json
import math
import os
import pickle
import random
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import torch

from bench.api.ours import is_ours

Code = Mapping[tuple[object, str], object]
"""What stands under a name of a module or a class."""

NOT_CALLED = (property, cached_property, classmethod)
"""Code of a class that cannot be called as it lies there."""

TORCH = Path(torch.__file__).parent
MOST_NAMES = 3

SHARED = (
    *(torch, torch.nn.functional, torch.nn.init, torch.linalg, np),
    *(builtins, copy, json, math, os, pickle, random, time),
)
"""Modules of others whose functions decide numbers, times or what is stored."""


class _Loaded:
    """The table of modules, so that a name of it is set as one of a module is."""

    __qualname__ = "sys.modules"

    def __setattr__(self, name: str, module: object) -> None:
        sys.modules[name] = module  # type: ignore[assignment]


LOADED = _Loaded()


def code_of_process() -> Code:
    """Every function that cells share: those of torch that attention uses, and our own."""
    found: dict[tuple[object, str], object] = {}
    for owner in SHARED:
        found.update(((owner, name), held) for name, held in vars(owner).items() if callable(held))
    for kind in (torch.Tensor, torch.nn.Module):
        # a method that a class inherits may be covered by a new one of its own
        for parent in reversed(kind.__mro__[:-1]):
            found.update(((kind, name), held) for name, held in vars(parent).items())
    for module in _our_modules():
        found[LOADED, module.__name__] = module
        for name, held in vars(module).items():
            if isinstance(held, FunctionType):
                found[module, name] = held
            elif isinstance(held, type) and held.__module__ == module.__name__:
                found.update(
                    ((held, name), one)
                    for name, one in vars(held).items()
                    if callable(one) or isinstance(one, NOT_CALLED)
                )
    return found


def _our_modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if is_ours(name) and isinstance(module, ModuleType):
            yield module


def undo_changes(before: Code) -> list[str]:
    """Put functions back that others stand for now; their names as one phrase, if there are any."""
    now = code_of_process()
    changed = [
        (owner, name)
        for (owner, name), held in before.items()
        if not _stands_for(now.get((owner, name)), held)
    ]
    for owner, name in changed:
        setattr(owner, name, before[owner, name])
    if not changed:
        return []
    names = sorted(_name(owner, name) for owner, name in changed)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return [f"the code of {', '.join(names[:MOST_NAMES])}{more}"]


def _stands_for(now: object, before: object) -> bool:
    """Whether it is the same function; torch's compiler wraps some of torch when it is loaded."""
    if now is before:
        return True
    if not isinstance(now, FunctionType):
        return False
    wrapped = (cell.cell_contents for cell in now.__closure__ or ())
    inside = Path(now.__code__.co_filename).is_relative_to(TORCH)
    return inside and any(held is before for held in wrapped)


def _name(owner: object, name: str) -> str:
    place = getattr(owner, "__qualname__", "") or getattr(owner, "__name__", "")
    return f"{place}.{name}"
