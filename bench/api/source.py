"""What is attended to: the source, the memory made from it, and the state of a path."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Union

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.packing import Packing
from bench.api.room import Kept, Room, Rooms, capacity_for, writes_in_place
from bench.api.shapes import Key, Value

Tree = Mapping[str, Union[Tensor, "Tree"]]
"""Nested tensors; every leaf has the batch first, so reordering beams is one `tree_map`."""


def tree_map(function: Callable[[Tensor], Tensor], tree: Tree) -> dict[str, Union[Tensor, "Tree"]]:
    """Apply a function to every leaf."""
    return {
        name: function(found) if isinstance(found, Tensor) else tree_map(function, found)
        for name, found in tree.items()
    }


def leaf(tree: Tree, *names: str) -> Tensor:
    """Follow names to a tensor."""
    found: Tensor | Tree = tree
    for name in names:
        assert not isinstance(found, Tensor), f"no branch {name!r} below a leaf"
        found = found[name]
    assert isinstance(found, Tensor), f"{names} is a branch, not a leaf"
    return found


def leaves(tree: Tree, names: Iterable[str] | None = None) -> dict[str, Tensor]:
    """Tensors of a branch, those of some names or all."""
    return {name: leaf(tree, name) for name in (tree if names is None else names)}


def branch(tree: Tree, name: str) -> Tree:
    """The branch of one component."""
    found = tree[name]
    assert not isinstance(found, Tensor), f"{name!r} is a leaf, not a branch"
    return found


def tree_join(one: Tree, two: Tree, dim: int) -> dict[str, Union[Tensor, "Tree"]]:
    """Concatenate two trees of the same structure leaf by leaf."""
    joined: dict[str, Tensor | Tree] = {}
    for name, found in one.items():
        other = two[name]
        if isinstance(found, Tensor) and isinstance(other, Tensor):
            joined[name] = torch.cat((found, other), dim)
        elif not isinstance(found, Tensor) and not isinstance(other, Tensor):
            joined[name] = tree_join(found, other, dim)
    return joined


@dataclass(frozen=True)
class Source:
    """The sequence that is attended to, before any variant touched it."""

    key: Key
    value: Value
    mask: Bool[Tensor, "B S"] | None = None
    """True where a key is real; None says that every key is."""
    tokens: Int[Tensor, "B S"] | None = None
    """Ids in the extended vocabulary, for copying and coverage embeddings."""
    extras: Tree = field(default_factory=dict)
    """Declared per-key inputs, leaves `B Hk S ...`; see `Component.key_inputs`."""
    shared: int = 0
    """Numbers at the front of every key that are its value, too, so that a cache keeps them once; 0
    where values are numbers of their own."""
    packing: Packing | None = None
    """How keys and values are written out, where `key` and `value` both are what is kept of them;
    None where they are themselves."""

    @property
    def num_keys(self) -> int:
        """S: the keys that are there, with padding."""
        return self.key.shape[2]

    @property
    def length(self) -> Int[Tensor, " B"]:
        """True number of keys of each row; not S."""
        if self.mask is None:
            return torch.full((len(self.key),), self.num_keys, device=self.key.device)
        return self.mask.sum(-1)

    @property
    def end(self) -> Int[Tensor, " B"]:
        """Place after the last real key of each row; its length, unless keys before are hidden."""
        if self.mask is None or not self.num_keys:
            return self.length
        places = torch.arange(1, self.num_keys + 1, device=self.key.device)
        return (self.mask * places).amax(-1)

    @property
    def rank(self) -> Int[Tensor, "B S"]:
        """Number of real keys up to each key, itself included."""
        return self.key_mask().cumsum(-1)

    def with_key(self, key: Key) -> "Source":
        """The same source with other keys, and with the values that they share."""
        value = key[..., : self.shared] if self.shared else self.value
        return replace(self, key=key, value=value)

    def narrow(self, start: int, count: int) -> "Source":
        """A range of keys, with their values, mask, tokens and inputs."""

        def cut(dim: int) -> Callable[[Tensor], Tensor]:
            return lambda x: x.narrow(dim, start, count)

        return replace(
            self,
            key=cut(2)(self.key),
            value=cut(2)(self.value),
            mask=None if self.mask is None else cut(1)(self.mask),
            tokens=None if self.tokens is None else cut(1)(self.tokens),
            extras=tree_map(cut(2), self.extras),
        )

    def written(self) -> "Source":
        """The same source with keys and values written out."""
        if self.packing is None:
            return self
        key, value = self.packing.written(self.key)
        return replace(self, key=key, value=value, shared=0, packing=None)

    def key_mask(self) -> Bool[Tensor, "B S"]:
        """The mask, written out."""
        if self.mask is not None:
            return self.mask
        rows, _, num_keys, _ = self.key.shape
        return torch.ones(rows, num_keys, dtype=torch.bool, device=self.key.device)


@dataclass(frozen=True)
class Memory:
    """What `prepare` made of a source: a function of the source alone, shared by all queries."""

    source: Source
    parts: Tree = field(default_factory=dict)
    """One branch per component; leaves `B Hk S ...` where the component is key-local."""

    sinks: int = 0
    """Keys at the front that are never forgotten."""
    forgotten: int = 0
    """Keys behind those that no later query sees, and that are not kept."""
    room: Room | None = None
    """Where keys that come later are written; None where they are joined by a copy."""

    @property
    def num_keys(self) -> int:
        """S: the keys that are there, with padding; not the forgotten ones."""
        return self.source.num_keys

    def extend(self, more: "Memory", limit: int | None = None) -> "Memory":
        """Append keys that arrived later (a KV cache); key-local parts only.

        Args:
            more: The keys.
            limit: How many keys there will be at most; None where nobody knows.
        """
        keys, new = self.num_keys, more.num_keys
        padded = self.source.mask is not None or more.source.mask is not None
        mine, theirs = self._kept(padded), more._kept(padded)
        if not writes_in_place():
            joined = (tree_join(a, b, d) for a, b, d in zip(mine, theirs, (1, 2), strict=True))
            return self._with(Kept(*joined), None)
        room = self.room
        same = room is not None and padded == (self.source.mask is not None)
        if room is None or not same or not room.fits(keys, new):
            room = Room(mine, keys, capacity_for(keys + new, limit))
        room.append(theirs, new)
        return self._with(room.view(), room)

    def newest(self, count: int) -> Source:
        """Keys that came last, with what stands beside them."""
        return self.source.narrow(self.num_keys - count, count)

    def first(self, count: int) -> "Memory":
        """The keys that came first, for a memory that later keys are joined to."""
        parts = tree_map(lambda x: x.narrow(2, 0, count), self.parts)
        return replace(self, source=self.source.narrow(0, count), parts=parts, room=None)

    def with_values(self, value: Value) -> "Memory":
        """The same keys with values that are kept elsewhere."""
        return replace(self, source=replace(self.source, value=value))

    def without_values(self) -> "Memory":
        """The same keys with values of no width, where a layer below keeps the values."""
        value = self.source.value
        return self.with_values(value.new_empty(*value.shape[:3], 0))

    def forget(self, sinks: int, last: int, slack: int) -> "Memory":
        """Keep the first and the last keys alone, if more than a slack lies between them.

        Args:
            sinks: First keys that stay.
            last: Last keys that stay.
            slack: Keys that may stay besides, so that what stays is not copied at every step.
        """
        keys = self.num_keys
        between = keys - sinks - last
        if between <= slack:
            return self
        kept = self._kept(self.source.mask is not None)

        def ends(dim: int) -> Callable[[Tensor], Tensor]:
            return lambda x: torch.cat(
                (x.narrow(dim, 0, sinks), x.narrow(dim, keys - last, last)), dim
            )

        trees = Kept(*(tree_map(ends(d), t) for t, d in zip(kept, (1, 2), strict=True)))
        return replace(self._with(trees, None), sinks=sinks, forgotten=self.forgotten + between)

    def _kept(self, padded: bool) -> Kept:
        """Everything with a place for each key; values that keys share are not kept twice."""
        source = self.source
        by_row = {"mask": source.key_mask()} if padded else {}
        by_row |= {} if source.tokens is None else {"tokens": source.tokens}
        values = {} if source.shared else {"value": source.value}
        return Kept(
            by_row, {"key": source.key, **values, "extras": source.extras, "parts": self.parts}
        )

    def _with(self, kept: Kept, room: Room | None) -> "Memory":
        """The same memory of other keys."""
        key, by_row = leaf(kept.third, "key"), kept.second
        source = Source(
            key=key,
            value=key[..., : self.source.shared]
            if self.source.shared
            else leaf(kept.third, "value"),
            mask=leaf(by_row, "mask") if "mask" in by_row else None,
            tokens=leaf(by_row, "tokens") if "tokens" in by_row else None,
            extras=branch(kept.third, "extras"),
            shared=self.source.shared,
            packing=self.source.packing,
        )
        return Memory(source, branch(kept.third, "parts"), self.sinks, self.forgotten, room)

    def select(self, rows: Int[Tensor, " N"]) -> "Memory":
        """Pick batch rows, for beams and for finished sentences that leave the batch."""
        source = self.source

        def pick(leaf: Tensor) -> Tensor:
            return leaf.index_select(0, rows)

        key = pick(source.key)
        chosen = Source(
            key=key,
            value=key[..., : source.shared] if source.shared else pick(source.value),
            mask=None if source.mask is None else pick(source.mask),
            tokens=None if source.tokens is None else pick(source.tokens),
            extras=tree_map(pick, source.extras),
            shared=source.shared,
            packing=source.packing,
        )
        return Memory(chosen, tree_map(pick, self.parts), self.sinks, self.forgotten)


@dataclass(frozen=True)
class State:
    """A function of the path: everything a variant remembers between queries.

    Causal self-attention keeps its KV cache or recurrent matrix here; cross attention keeps its
    keys in `Memory`. Nothing else may remember: no state on `self`.
    """

    offset: int = 0
    """Queries answered so far; one number for the batch, so that nothing synchronizes a GPU."""
    carried: Tree = field(default_factory=dict)
    """One branch per component that carries something."""
    cache: Memory | None = None
    """Keys seen so far, under causal self-attention."""
    heads: Tree = field(default_factory=dict)
    """What the projections of a slot remember of earlier states."""
    rooms: Rooms | None = field(default=None, compare=False)
    """Where what is carried for each key is written, so that a step copies nothing of it; None
    where nobody has asked yet, and in code that is compiled."""

    def select(self, rows: Int[Tensor, " N"]) -> "State":
        """Pick batch rows."""

        def pick(tree: Tree) -> Tree:
            return tree_map(lambda leaf: leaf.index_select(0, rows), tree)

        cache = None if self.cache is None else self.cache.select(rows)
        carried, heads = pick(self.carried), pick(self.heads)
        return State(self.offset, carried, cache, heads)


def out_of_rooms(state: State) -> State:
    """The state, with what it carries copied where gradients are wanted.

    Autograd keeps tensors as they are, and a later call without gradients may write behind what
    stands in a room.
    """
    if writes_in_place() or state.rooms is None or not state.rooms.taken():
        return state
    return replace(state, carried=tree_map(Tensor.clone, state.carried), rooms=None)


def rooms_of(state: State) -> Rooms | None:
    """Where a path writes what it carries; None in code that is compiled, which copies."""
    if state.rooms is None and not torch.compiler.is_compiling():
        return Rooms()
    return state.rooms
