"""Bytes that decoding must keep, measured from the live tensors of a state."""

from collections.abc import Iterable, Iterator

from torch import Tensor

from bench.api.room import tensors_of
from bench.api.source import Memory, State


def state_bytes(states: Iterable[State]) -> int:
    """Bytes of some states: caches, what components carry, and what heads remember."""
    return bytes_of(tensor for state in states for tensor in _tensors(state))


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Bytes behind some tensors; what two of them share counts once, and so does what is repeated.

    >>> import torch
    >>> row = torch.zeros(3)
    >>> bytes_of([row, row, row.expand(5, 3)])
    12
    """
    views: dict[int, dict[object, int]] = {}
    limits: dict[int, int] = {}
    for one in tensors:
        storage = one.untyped_storage()
        view = (one.storage_offset(), one.shape, one.stride())
        views.setdefault(storage.data_ptr(), {})[view] = one.numel() * one.element_size()
        limits[storage.data_ptr()] = storage.nbytes()
    # keys and values may be slices of one tensor, and an expanded row is one row
    return sum(min(sum(found.values()), limits[at]) for at, found in views.items())


def _tensors(state: State) -> Iterator[Tensor]:
    if state.cache is not None:
        yield from _kept(state.cache)
    yield from tensors_of(state.carried)
    yield from tensors_of(state.heads)


def _kept(memory: Memory) -> Iterator[Tensor]:
    source = memory.source
    yield source.key
    if not source.shared:
        yield source.value
    yield from (one for one in (source.mask, source.tokens) if one is not None)
    yield from tensors_of(source.extras)
    yield from tensors_of(memory.parts)
