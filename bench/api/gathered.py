"""Windows copied out of a source: each query becomes a row of its own with its window as keys.

What follows is ordinary attention over few keys, so that time and memory are linear in the source.
Legal where the score looks at one key at a time and nothing asks where a key stood.
"""

from collections.abc import Iterable
from dataclasses import replace

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from bench.api.call import Call
from bench.api.source import Memory, Source, branch, tree_map
from bench.api.stream import take_keys


def fold_call(call: Call, index: Int[Tensor, "#B #Hq L W"], branches: Iterable[str]) -> Call:
    """The call of single queries: B L rows, one query and W keys each.

    Args:
        call: All queries against the whole source.
        index: Keys of each query's window.
        branches: Branches of the memory that are key-local and wanted.
    """
    length, width = index.shape[2:]
    parts = {name: branch(call.memory.parts, name) for name in branches}
    source = replace(call.memory.source, mask=None, tokens=None)
    taken = take_keys(Memory(source, parts), index.flatten(2))

    def fold(leaf: Shaped[Tensor, "B H LW *n"]) -> Shaped[Tensor, "BL H W *n"]:
        return leaf.unflatten(2, (length, width)).transpose(1, 2).flatten(0, 1)

    whole = taken.source
    windows = Source(fold(whole.key), fold(whole.value), extras=tree_map(fold, whole.extras))
    query = call.query.transpose(1, 2).flatten(0, 1).unsqueeze(2)
    return Call(
        query=query,
        memory=Memory(windows, tree_map(fold, taken.parts)),
        offset=0,
        causal=False,
        read=call.read,
        progress=call.progress,
        extras=tree_map(lambda leaf: leaf.flatten(0, 1).unsqueeze(1), call.extras),
    )


def fold_windows(x: Shaped[Tensor, "#B #Hq L W"]) -> Shaped[Tensor, "#BL #Hq 1 W"]:
    """Something of each query's window, as the folded call sees it."""
    return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)


def unfold(x: Float[Tensor, "BL Hq 1 n"], length: int) -> Float[Tensor, "B Hq L n"]:
    """Rows of single queries, put back."""
    return x.squeeze(2).unflatten(0, (-1, length)).transpose(1, 2)


def spread(
    weights: Float[Tensor, "B Hq L W"], index: Int[Tensor, "#B #Hq L W"], num_keys: int
) -> Float[Tensor, "B Hq L S"]:
    """Weights of windows as weights of all keys, zero outside."""
    found = weights.new_zeros(*weights.shape[:3], num_keys)
    # keys that are not allowed weigh nothing, so it does not matter where they point
    return found.scatter_add(-1, index.expand_as(weights), weights)
