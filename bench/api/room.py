"""Tensors with room behind their end, so that a decode step appends to a cache and copies nothing.

What was written stays as it is: a room knows how much of it is taken, and whoever continues from
an earlier end gets a room of its own. Under gradients nothing is written in place; there a cache is
joined by a copy. A room of inference mode is written in that mode alone, as PyTorch demands.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Union

import torch
from torch import Tensor

LEAST = 32
"""Keys for which there is room at least."""
SHARE = 4
"""A room has space for one new key to so many that are there, so that each is copied that often."""

Tree = Mapping[str, Union[Tensor, "Tree"]]


class Kept(NamedTuple):
    """Tensors with a place for each key, by the axis of the keys."""

    second: Tree
    """Leaves `B S`."""
    third: Tree
    """Leaves `B H S ...`."""


class Room:
    """Space for the keys of one path."""

    def __init__(self, begin: Kept, length: int, capacity: int) -> None:
        self.capacity = capacity
        self.taken = 0
        self._space = Kept(*(_spacious(t, d, capacity) for t, d in zip(begin, (1, 2), strict=True)))
        self.append(begin, length)

    def fits(self, end: int, more: int) -> bool:
        """Whether more keys can be written behind this end, where nobody else has written."""
        if self._is_sealed():
            return False
        return self.taken == end and end + more <= self.capacity

    def append(self, more: Kept, length: int) -> None:
        """Write keys behind those that are there."""
        for space, new, dim in zip(self._space, more, (1, 2), strict=True):
            _write(space, new, dim, self.taken)
        self.taken += length

    def rewind(self, end: int) -> None:
        """Let what stands behind an end be written over; for who knows that nobody reads it."""
        self.taken = min(self.taken, end)

    def view(self) -> Kept:
        """What has been written."""
        return Kept(*(_front(t, d, self.taken) for t, d in zip(self._space, (1, 2), strict=True)))

    def _is_sealed(self) -> bool:
        """Whether inference mode made the space and has ended; code that is compiled cannot ask."""
        if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
            return False
        # all were made at once
        return next(leaf for tree in self._space for leaf in tensors_of(tree)).is_inference()


class Rooms:
    """Preallocated space for what a path carries for each key beside its cache.

    The cache has space of its own. What is carried are plain tensors, and whoever selects rows or
    changes numbers gets other tensors. Space is used again only for tensors at its own address.
    """

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, ...], Room] = {}

    def join(self, before: Mapping[str, Tensor], more: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What is carried for all keys; see `Call.join`."""
        if not writes_in_place() or torch.compiler.is_compiling():
            return joined(before, more)
        names, kept, new = tuple(before), _by_axis(before), _by_axis(more)
        length, count = _length(before), _length(more)
        room = self._rooms.get(names)
        if room is None or not room.fits(length, count) or not _same(room.view(), kept):
            room = self._rooms[names] = Room(kept, length, capacity_for(length + count, None))
        room.append(new, count)
        found = room.view()
        return {name: _flat(found)[name] for name in names}

    def taken(self) -> dict[tuple[str, ...], int]:
        """How much of each room is taken."""
        return {names: room.taken for names, room in self._rooms.items()}

    def rewind(self, taken: Mapping[tuple[str, ...], int]) -> None:
        """Let what stands behind be written over; for who knows that nobody reads it."""
        for names, end in taken.items():
            self._rooms[names].rewind(end)


def joined(before: Mapping[str, Tensor], more: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What is carried for all keys, by a copy."""
    return {name: torch.cat((found, more[name]), _axis(found)) for name, found in before.items()}


def capacity_for(keys: int, limit: int | None) -> int:
    """Room for some keys and for those that come next.

    Args:
        keys: How many there are.
        limit: How many there will be at most; None where nobody knows.
    """
    wanted = keys + max(LEAST, keys // SHARE)
    return wanted if limit is None else max(keys, min(wanted, limit))


def tensors_of(tree: Tree) -> Iterator[Tensor]:
    """All tensors of a tree."""
    for found in tree.values():
        if isinstance(found, Tensor):
            yield found
        else:
            yield from tensors_of(found)


def writes_in_place() -> bool:
    """Whether nothing needs the tensors as they were."""
    return not torch.is_grad_enabled()


def _axis(leaf: Tensor) -> int:
    """The axis of the keys."""
    return 1 if leaf.ndim == 2 else 2


def _length(leaves: Mapping[str, Tensor]) -> int:
    return next(leaf.shape[_axis(leaf)] for leaf in leaves.values())


def _by_axis(leaves: Mapping[str, Tensor]) -> Kept:
    parts: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
    for name, leaf in leaves.items():
        parts[_axis(leaf) - 1][name] = leaf
    return Kept(*parts)


def _flat(kept: Kept) -> dict[str, Tensor]:
    return {name: leaf for tree in kept for name, leaf in tree.items() if isinstance(leaf, Tensor)}


def _same(one: Kept, two: Kept) -> bool:
    """Whether two sets of tensors are the same numbers in memory."""
    others = _flat(two)
    return all(
        leaf.data_ptr() == others[name].data_ptr()
        and leaf.shape == others[name].shape
        and leaf.stride() == others[name].stride()
        for name, leaf in _flat(one).items()
    )


def _spacious(tree: Tree, dim: int, capacity: int) -> Tree:
    def one(leaf: Tensor) -> Tensor:
        return leaf.new_empty((*leaf.shape[:dim], capacity, *leaf.shape[dim + 1 :]))

    return {
        name: one(found) if isinstance(found, Tensor) else _spacious(found, dim, capacity)
        for name, found in tree.items()
    }


def _write(space: Tree, new: Tree, dim: int, at: int) -> None:
    for name, found in space.items():
        other = new[name]
        if isinstance(found, Tensor) and isinstance(other, Tensor):
            found.narrow(dim, at, other.shape[dim]).copy_(other)
        elif not isinstance(found, Tensor) and not isinstance(other, Tensor):
            _write(found, other, dim, at)


def _front(tree: Tree, dim: int, length: int) -> Tree:
    return {
        name: found.narrow(dim, 0, length)
        if isinstance(found, Tensor)
        else _front(found, dim, length)
        for name, found in tree.items()
    }
