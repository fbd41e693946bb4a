"""Hard decoding in linear time: each query reads on from where the last one stopped."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.call import Attended, Call
from bench.api.chain_parts import ChainParts
from bench.api.heads import expand_heads
from bench.api.shapes import Query
from bench.api.source import Memory, Source, State, leaf, tree_map

Stream = Callable[
    [Query, Memory, Int[Tensor, "B Hq"]],
    tuple[Float[Tensor, "B Hq 1 Ev"], Int[Tensor, "B Hq"], Int[Tensor, "B Hq"]],
]
"""`Variant.stream`: one query, the memory and the pointers; output, pointers, and keys read."""

POINTER = "pointer"
"""Branch of a state under `read="stream"`: where each head goes on reading."""


def attend_streaming(stream: Stream, query: Query, memory: Memory, state: State) -> Attended:
    """Answer query after query; each head of each row carries its own pointer.

    `touched` counts the real keys that were read: up to the furthest pointer, or all of them.
    """
    pointer = torch.zeros(query.shape[:2], dtype=torch.long, device=query.device)
    if state.offset > 0:
        pointer = leaf(state.carried, POINTER)
    num_keys, length = memory.num_keys, memory.source.length.unsqueeze(1)
    rank = memory.source.rank
    found: list[Tensor] = []
    touched: list[Tensor] = []
    for one in query.split(1, 2):
        output, pointer, _ = stream(one, memory, pointer)
        found.append(output)
        over = (pointer == num_keys) | (length == 0)
        read = rank.gather(1, pointer.clamp(max=num_keys - 1))
        touched.append(torch.where(over, length, read).amax(1))
    # half precision has no count of some hundred keys
    counts = torch.promote_types(query.dtype, torch.float32)
    terms = {"touched": torch.stack(touched, 1).to(counts)}
    after = State(offset=state.offset + len(found), carried={POINTER: pointer})
    return Attended(torch.cat(found, 2), None, after, terms)


def stream_hard(
    chain: ChainParts,
    query: Float[Tensor, "B Hq 1 Eq"],
    memory: Memory,
    pointer: Int[Tensor, "B Hq"],
) -> tuple[Float[Tensor, "B Hq 1 Ev"], Int[Tensor, "B Hq"], Int[Tensor, "B Hq"]]:
    """Advance every head's pointer to the first key whose stop probability exceeds one half.

    Each round scores one key a head, so keys beyond the pointer are never touched; the rounds end
    when all heads have stopped or run off the end. Keys that are not real are passed over. A
    normalizer with a lookback reads keys before the stop again, without looking beyond it.
    """
    source = memory.source
    heads = pointer.shape[1]
    num_keys = source.value.shape[2]
    real = source.key_mask()[:, None].expand(-1, heads, -1)
    end = source.end[:, None].expand(-1, heads)
    searching = pointer < end
    stopped = torch.zeros_like(searching)
    touched = torch.zeros_like(pointer)
    while bool(searching.any()):
        at = pointer.clamp(max=num_keys - 1).unsqueeze(2)
        call = Call(query=query, memory=take_keys(memory, at), offset=0, causal=False)
        stop = chain.normalizer.stop_probability(chain.score.energy(call, None))
        assert stop is not None, "a normalizer that gives `stream` has a stop probability"
        stops = (stop[..., 0, 0] > 0.5) & real.gather(2, at).squeeze(2)
        touched = touched + searching
        stopped = stopped | (searching & stops)
        searching = searching & ~stopped
        pointer = torch.where(searching, pointer + 1, pointer)
        # a walk that has left the source stays past its end, whatever the next query is
        pointer = torch.where(searching & (pointer >= end), num_keys, pointer)
        searching = searching & (pointer < end)
    reads = stopped | (end > 0) if chain.normalizer.stays_at_end else stopped
    at = torch.where(stopped, pointer, end - 1).clamp(min=0)
    output = _read(chain, query, memory, at, real)
    return torch.where(reads[:, :, None, None], output, 0.0), pointer, touched


def _read(
    chain: ChainParts,
    query: Float[Tensor, "B Hq 1 Eq"],
    memory: Memory,
    at: Int[Tensor, "B Hq"],
    real: Bool[Tensor, "B Hq S"],
) -> Float[Tensor, "B Hq 1 Ev"]:
    """The value of one key a head, or the mixture of that key and those before it."""
    source, (rows, heads) = memory.source, at.shape
    back = chain.normalizer.lookback
    if back == 0:
        index = at[:, :, None, None].expand(rows, heads, 1, source.value.shape[3])
        return expand_heads(source.value, heads).gather(2, index)
    furthest = int(at.max()) if back is None else back
    index = at.unsqueeze(2) - torch.arange(furthest, -1, -1, device=at.device)
    inside = index.clamp(min=0)
    taken = take_keys(memory, inside)
    allowed = (index >= 0) & real.gather(2, inside)
    call = Call(query=query, memory=taken, offset=0, causal=False)
    return chain.normalizer.stop_weights(call, allowed.unsqueeze(2)) @ taken.source.value


def take_keys(memory: Memory, index: Int[Tensor, "#B #Hq n"]) -> Memory:
    """Gather keys per head, or the same of all heads; legal only where the score is key-local."""

    def take(leaf: Tensor) -> Tensor:
        wide = leaf if index.shape[1] == 1 else expand_heads(leaf, index.shape[1])
        rows, heads = (torch.arange(count, device=index.device) for count in wide.shape[:2])
        # copies whole vectors, which is faster than a gather of numbers
        return wide[rows[:, None, None], heads[None, :, None], index]

    source = memory.source
    extras = tree_map(take, source.extras)
    taken = Source(key=take(source.key), value=take(source.value), extras=extras)
    return Memory(taken, tree_map(take, memory.parts))
