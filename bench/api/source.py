"""What is attended to: the source, the memory made from it, and the state of a path."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Union

import torch
from jaxtyping import Bool, Int
from torch import Tensor

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
    """Declared per-key inputs, leaves `B Hk S ...`."""

    @property
    def length(self) -> Int[Tensor, " B"]:
        """True number of keys of each row; not S."""
        if self.mask is None:
            rows, _, num_keys, _ = self.key.shape
            return torch.full((rows,), num_keys, device=self.key.device)
        return self.mask.sum(-1)

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

    def extend(self, more: "Memory") -> "Memory":
        """Append keys that arrived later (a KV cache); key-local parts only."""
        mask = None
        if self.source.mask is not None or more.source.mask is not None:
            mask = torch.cat((self.source.key_mask(), more.source.key_mask()), 1)
        tokens = None
        if self.source.tokens is not None and more.source.tokens is not None:
            tokens = torch.cat((self.source.tokens, more.source.tokens), 1)
        source = Source(
            key=torch.cat((self.source.key, more.source.key), 2),
            value=torch.cat((self.source.value, more.source.value), 2),
            mask=mask,
            tokens=tokens,
            extras=tree_join(self.source.extras, more.source.extras, 2),
        )
        return Memory(source, tree_join(self.parts, more.parts, 2))

    def select(self, rows: Int[Tensor, " N"]) -> "Memory":
        """Pick batch rows, for beams and for finished sentences that leave the batch."""
        source = self.source

        def pick(leaf: Tensor) -> Tensor:
            return leaf.index_select(0, rows)

        chosen = Source(
            key=pick(source.key),
            value=pick(source.value),
            mask=None if source.mask is None else pick(source.mask),
            tokens=None if source.tokens is None else pick(source.tokens),
            extras=tree_map(pick, source.extras),
        )
        return Memory(chosen, tree_map(pick, self.parts))


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

    def select(self, rows: Int[Tensor, " N"]) -> "State":
        """Pick batch rows."""
        carried = tree_map(lambda leaf: leaf.index_select(0, rows), self.carried)
        cache = None if self.cache is None else self.cache.select(rows)
        return replace(self, carried=carried, cache=cache)
