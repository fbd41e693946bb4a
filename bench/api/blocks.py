"""Bands read in blocks: neighboring queries are asked together, with the keys that they may see.

A query that sees keys up to a distance alone leaves most of a matrix of energies empty. Here the
queries of a block share one span of keys, so that time and memory are linear in the sequence.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call
from bench.api.fused import fused_softmax
from bench.api.mask import Mask
from bench.api.shapes import Key, Mixed, Query, Value

SMALLEST = 64
"""Queries of a block at least; on a processor 32 to 128 take about the same time, and more take
longer."""


def block_length(reach: int) -> int:
    """Queries of a block. Each key is copied three times at most, without causality five times."""
    return max(SMALLEST, -(-reach // 2))


def blocks_pay(call: Call, reach: int) -> bool:
    """Whether blocks leave out a part of the matrix."""
    behind = 0 if call.causal else reach
    return call.query.shape[2] > reach + block_length(reach) + behind


def read_in_blocks(
    query: Query,
    key: Key,
    value: Value,
    *,
    call: Call,
    mask: Mask,
    scale: float,
    sink: Float[Tensor, " #Hq"] | None = None,
) -> Mixed:
    """Read the values by a softmax over scaled dot products, block by block of the queries.

    Args:
        query: The queries.
        key: The keys that are there.
        value: Their values.
        call: Where queries and keys stand, and which keys are real.
        mask: A mask with a reach.
        scale: Factor of the dot products.
        sink: Energy of a key without a value, for each head; None for no such key.
    """
    cut = _Cut.of(call, mask)
    padded = functional.pad(query, (0, 0, 0, cut.blocks * cut.size - query.shape[2]))
    asked = padded.unflatten(2, (cut.blocks, cut.size)).transpose(1, 2).flatten(0, 1)
    keys = cut.keys(key)
    read = fused_softmax(
        asked,
        keys,
        keys if value is key else cut.keys(value),
        mask=_allowed(cut, call, mask),
        causal=False,
        scale=scale,
        sink=sink,
    )
    joined = read.unflatten(0, (-1, cut.blocks)).transpose(1, 2).flatten(2, 3)
    return joined[:, :, : query.shape[2]]


@dataclass(frozen=True)
class _Cut:
    """How a sequence is cut: each block of queries has the sinks and one span of keys."""

    size: int
    """Queries of a block."""
    blocks: int
    span: int
    """Keys of a span, some of which may lie outside of the sequence."""
    first: int
    """Index of the first key of the first span; less than 0 where it lies outside."""
    sinks: int

    @classmethod
    def of(cls, call: Call, mask: Mask) -> "_Cut":
        assert mask.reach is not None, "only a mask with a reach has blocks"
        size = block_length(mask.reach)
        return cls(
            size=size,
            blocks=-(-call.query.shape[2] // size),
            span=mask.reach + size + (0 if call.causal else mask.reach),
            # the index of a key that is no sink is its place less those that were forgotten
            first=call.offset - call.memory.forgotten - mask.reach,
            sinks=min(mask.sinks, call.memory.num_keys),
        )

    def keys(self, x: Shaped[Tensor, "B H S E"]) -> Shaped[Tensor, "N H K E"]:
        """Sinks and span of each block, of keys or values; zeros outside of the sequence."""
        end = self.first + (self.blocks - 1) * self.size + self.span
        front, back = max(0, -self.first), max(0, end - x.shape[2])
        padded = functional.pad(x, (0, 0, front, back))
        whole = padded.narrow(2, self.first + front, end - self.first)
        found = whole.unfold(2, self.span, self.size).permute(0, 2, 1, 4, 3)
        if self.sinks:
            sinks = x[:, None, :, : self.sinks].expand(-1, self.blocks, -1, -1, -1)
            found = torch.cat((sinks, found), 3)
        return found.flatten(0, 1)


def _allowed(cut: _Cut, call: Call, mask: Mask) -> Bool[Tensor, "N 1 C K"]:
    """Which keys of its block each query sees."""
    memory, device = call.memory, call.query.device
    blocks = torch.arange(cut.blocks, device=device)[:, None, None] * cut.size
    query = call.offset + blocks + torch.arange(cut.size, device=device)[:, None]
    start = cut.first + memory.forgotten + blocks
    key = start + torch.arange(cut.span, device=device)
    forgotten = memory.sinks + memory.forgotten if memory.forgotten else 0
    there = (key >= forgotten) & (key < memory.num_keys + memory.forgotten)
    allowed = _seen(query, key, call, mask) & there
    if cut.sinks:
        sink = torch.arange(cut.sinks, device=device)[None, None]
        # a sink inside the span must not count twice
        outside = (sink < start) | (memory.forgotten > 0)
        allowed = torch.cat((_seen(query, sink, call, mask) & outside, allowed), 2)
    allowed = allowed[None]
    if memory.source.mask is not None:
        allowed = allowed & cut.keys(memory.source.mask[:, None, :, None]).unflatten(
            0, (-1, cut.blocks)
        ).mT.squeeze(2)
    rows = call.query.shape[0]
    return allowed.expand(rows, -1, -1, -1).flatten(0, 1).unsqueeze(1)


def _seen(
    query: Int[Tensor, "N C 1"], key: Int[Tensor, "#N 1 K"], call: Call, mask: Mask
) -> Bool[Tensor, "N C K"]:
    """Whether queries see keys by their places."""
    seen = mask.sees(query, key)
    return seen & (key <= query) if call.causal else seen
