"""Blocks of query-key pairs that fit a cache, for scores with a hidden layer for every pair."""

from collections.abc import Iterator

from jaxtyping import Float
from torch import Tensor

BLOCK = 2**18
"""Numbers computed at once: a megabyte in float32, about what a core has of its own cache."""
GPU_BLOCK = 2**24
"""The same where launching a kernel takes longer than a small block."""

Block = tuple[slice, slice]
"""Rows and queries."""


def block_steps(query: Float[Tensor, "B H L D"], keys: int) -> tuple[int, int]:
    """How many rows and queries make a block, with all heads and units of their pairs."""
    _, heads, queries, width = query.shape
    return _fitting(queries, heads * keys * width, BLOCK if query.is_cpu else GPU_BLOCK)


def unit_steps(queries: int, keys: int) -> tuple[int, int]:
    """The same where one hidden unit of one head is computed at a time, on a CPU."""
    return _fitting(queries, keys, BLOCK)


def _fitting(queries: int, size: int, block: int) -> tuple[int, int]:
    if queries * size <= block:
        return max(1, block // max(1, queries * size)), queries
    return 1, max(1, block // size)


def blocks(rows: int, queries: int, steps: tuple[int, int]) -> Iterator[Block]:
    """Blocks of these steps that cover all rows and queries."""
    row_step, step = steps
    for row in range(0, rows, row_step):
        for at in range(0, queries, max(1, step)):
            yield slice(row, row + row_step), slice(at, at + step)
