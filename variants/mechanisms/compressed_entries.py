"""Compressed entries: closed blocks of keys stand in the cache as one entry each, beside a window.

DeepSeek-AI, 2026, "DeepSeek-V4: towards highly efficient million-token context intelligence",
https://arxiv.org/abs/2606.19348, section 2.3. What its two mechanisms share.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.parts import mix_in_parts, part_length
from bench.api.shapes import Allowed
from bench.api.source import Memory, Source, State, Tree, branch, leaf, leaves, tree_join, tree_map
from variants.mechanisms.turned import Turned
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY
from variants.precision import at_least_single

KEY_GATE, VALUE_GATE = "key_gate", "value_gate"
"""Inputs of each key: logits of the weight that each of its numbers has in an entry."""
NEAR, OPEN, ENTRIES, REAL, REAL_ENTRIES = "near", "open", "entries", "real", "real_entries"
"""Branches of the state: keys and values of the last tokens; what blocks that are not compressed
yet will need beside them; entries; and, where there is padding, what of them is real."""

AT_ONCE = 256
"""Queries of a part at most, because each of them has an energy of every token of its part."""


class Choice(NamedTuple):
    """Entries that each query reads, and the scores that they were chosen by, if any."""

    read: Allowed
    scores: Float[Tensor, "B L N"] | None = None


def compress(
    x: Float[Tensor, "B H T E"],
    gate: Float[Tensor, "B H T sE"],
    bias: Float[Tensor, "H m s E"],
    real: Bool[Tensor, "B T"],
    *,
    first: bool,
) -> Float[Tensor, "B H N E"]:
    """Sum the vectors of each block, number by number, with the softmax of gate and bias.

    Args:
        x: Vectors of whole blocks.
        gate: Their gates. With s = 2 the second half is for the entry of the block after; the
            entry of a block is then a sum over two blocks, and the first block has none.
        bias: Added to the gates by place in the block.
        real: Which vectors are real.
        first: Whether the first block begins the sequence, and has an entry of itself alone.
    """
    size, series = bias.shape[1:3]
    x, real = x.unflatten(2, (-1, size)), real.unflatten(1, (-1, size))[:, None, :, :, None]
    logits = gate.unflatten(2, (-1, size)).unflatten(-1, (series, -1)) + bias[:, None]
    own = logits[..., 0, :]
    if series == 2:
        before = logits[..., 1, :]
        if first:
            x, real, own, before = (_behind_nothing(each) for each in (x, real, own, before))
        x, real = (torch.cat((each[:, :, :-1], each[:, :, 1:]), 3) for each in (x, real))
        own = torch.cat((before[:, :, :-1], own[:, :, 1:]), 3)
    own = at_least_single(own)
    weights = torch.softmax(torch.where(real, own, torch.finfo(own.dtype).min), 3).to(x.dtype)
    return (weights * torch.where(real, x, 0.0)).sum(3)


def _behind_nothing(x: Tensor) -> Tensor:
    """Blocks with one in front that holds nothing."""
    return functional.pad(x, (0, 0, 0, 0, 1, 0))


class CompressedEntries(Turned):
    """softmax over entries of closed blocks and over the last keys, together.

    An entry of m keys is closed for the last of them and for all after it. Time O(L S E).
    """

    needs = frozenset({"equal_width"})
    unsupported = CAUSAL_ONLY
    remembers_keys = False
    counts_places = True
    series: int = 1
    """2 where an entry is made of its block and of the one before."""

    def __init__(self, name: str, dims: Dims, impl: Impl, *, block: int, window: int) -> None:
        super().__init__(dims, impl)
        if min(block, window) < 1:
            raise InvalidConfig(
                f"{name}: block and window must be at least 1, got {block} and {window}."
            )
        self.size, self.near = block, window
        self.scale = dims.key_width**-0.5
        keys, values = dims.key_width, dims.value_width
        self.key_inputs = {
            KEY_GATE: SlotInput(self.series * keys),
            VALUE_GATE: SlotInput(self.series * values),
        }
        self.key_bias = nn.Parameter(torch.zeros(dims.kv_heads, block, self.series, keys))
        self.value_bias = nn.Parameter(
            torch.zeros(dims.num_value_heads, block, self.series, values)
        )
        self.starts = {"key_bias": 0.0, "value_bias": 0.0}

    def biases(self) -> dict[str, Tensor]:
        """What is compressed, each with the bias of its gates."""
        return {"key": self.key_bias, "value": self.value_bias}

    def choose(self, call: Call, entries: Tree, closed: Allowed) -> Choice:
        """Entries that are read, of those that are closed."""
        return Choice(closed)

    def terms(
        self, choice: Choice, weights: Float[Tensor, "B Hq L N"]
    ) -> dict[str, Float[Tensor, "B L"]]:
        """What is said of each query."""
        return {}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """No key and no entry yet."""

        def none(heads: int, width: int) -> Tensor:
            return torch.zeros(like.rows, heads, 0, width, dtype=like.dtype, device=like.device)

        keys = self.dims.kv_heads
        near = {
            "key": none(keys, self.dims.key_width),
            "value": none(self.dims.num_value_heads, self.dims.value_width),
        }
        still = {
            name: none(one.num_heads(keys), one.width) for name, one in self.key_inputs.items()
        }
        entries = {
            name: none(bias.shape[0], bias.shape[-1]) for name, bias in self.biases().items()
        }
        return State(carried={NEAR: near, OPEN: still, ENTRIES: entries})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Many queries in parts, each with the keys that came with it."""
        rows, heads, length, _ = call.query.shape
        entries = leaf(carried, ENTRIES, "key").shape[2] + length // self.size
        of_one = rows * heads * (entries + self.near + length)
        size = part_length(call, of_one, self.part_numbers) if self.impl == "auto" else length
        if size < length:
            size = min(size, AT_ONCE)

        def answer(part: Call, carried: Tree) -> MixResult:
            source = call.memory.source.narrow(part.offset - call.offset, part.query.shape[2])
            return self._mix_part(replace(part, memory=Memory(source)), carried)

        return mix_in_parts(call, carried, size, answer)

    def _mix_part(self, call: Call, carried: Tree) -> MixResult:
        """Compress blocks that have been closed, read entries and the window, forget the rest."""
        source, end = call.memory.source, call.offset + call.query.shape[2]
        near = tree_join(branch(carried, NEAR), {"key": source.key, "value": source.value}, 2)
        still = tree_join(branch(carried, OPEN), source.extras, 2)
        entries = branch(carried, ENTRIES)
        real = torch.cat((_real(carried, REAL, branch(carried, NEAR)), source.key_mask()), 1)
        made, new = self._closed(near, still, real, end, first=not leaf(entries, "key").shape[2])
        real_entries = _real(carried, REAL_ENTRIES, entries)
        if new.shape[1]:  # most steps of decoding close no block, and need not copy entries
            real_entries = torch.cat((real_entries, new), 1)
            entries = call.join(leaves(entries), leaves(made))
        place = torch.arange(end - real.shape[1], end, device=real.device)
        distance = call.position[:, None] - place
        local = (distance >= 0) & (distance < self.near) & real[:, None, None]
        last = (torch.arange(real_entries.shape[1], device=real.device) + 1) * self.size - 1
        closed = (last <= call.position[:, None]) & real_entries[:, None, None]
        choice = self.choose(call, entries, closed)
        # one softmax of both, without a copy of entries and keys beside each other
        query = self.scale * call.query
        energy = [query @ self._of_heads(one, "key").transpose(2, 3) for one in (entries, near)]
        weights = masked_softmax(torch.cat(energy, -1), torch.cat((choice.read, local), -1))
        of_entries, of_near = weights.split((len(last), real.shape[1]), -1)
        output = of_entries @ self._of_heads(entries, "value")
        output = output + of_near @ self._of_heads(near, "value")
        terms = self.terms(choice, of_entries)
        # the next query sees one key less than the window, beside its own
        waiting = end - max(0, end // self.size - self.series + 1) * self.size
        near = _last(near, max(waiting, self.near - 1))
        after: dict[str, Tensor | Tree] = {
            NEAR: near,
            OPEN: _last(still, waiting),
            ENTRIES: entries,
        }
        if REAL in carried or source.mask is not None:
            kept = leaf(near, "key").shape[2]
            after |= {REAL: real[:, real.shape[1] - kept :].clone(), REAL_ENTRIES: real_entries}
        return MixResult(output, None, after, terms)

    def _of_heads(self, tree: Tree, name: str) -> Float[Tensor, "B Hq n E"]:
        """Keys or values as query heads read them."""
        return expand_heads(leaf(tree, name), self.dims.heads)

    def _closed(
        self, near: Tree, still: Tree, real: Bool[Tensor, "B T"], end: int, *, first: bool
    ) -> tuple[Tree, Bool[Tensor, "B N"]]:
        """Entries of the blocks that have been closed, and which are of real tokens."""
        waiting = leaf(still, KEY_GATE).shape[2]
        whole = waiting - end % self.size  # numbers of gates in closed blocks; they begin one
        begin = real.shape[1] - waiting
        seen = real[:, begin : begin + whole]
        made = {}
        for name, bias in self.biases().items():
            x = leaf(near, name)[:, :, begin:] if name in near else leaf(still, name)
            gate = expand_heads(leaf(still, f"{name}_gate"), len(bias))
            parts = (x[:, :, :whole], gate[:, :, :whole], bias.to(x.dtype), seen)
            made[name] = compress(*parts, first=first)
        found = seen.unflatten(1, (-1, self.size)).any(-1)
        return made, found if first else found[:, self.series - 1 :]

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Query by query and head by head, blocks as lists of their keys."""
        heads, length, _ = query.shape
        entries = {name: self._oracle_entries(name, source) for name in self.biases()}
        found, said = [], []
        for t in range(length):
            closed = [(n + 1) * self.size <= t + 1 for n in range(len(entries["key"][0]))]
            chosen, index = self.oracle_choose(t, entries, closed, call)
            rows = []
            for h in range(heads):
                group, value_group = (h * len(entries[n]) // heads for n in ("key", "value"))
                near = range(max(0, t - self.near + 1), t + 1)
                places = [n for n in range(len(closed)) if chosen[n]]
                keys = [entries["key"][group][n] for n in places]
                keys += [source.key[0, group, s] for s in near]
                values = [entries["value"][value_group][n] for n in places]
                values += [source.value[0, value_group, s] for s in near]
                energy = torch.stack([(query[h, t] * key).sum() * self.scale for key in keys])
                weights = list(oracle_softmax(energy, [True] * len(keys)))
                pairs = zip(weights, values, strict=True)
                found.append(sum((w * v for w, v in pairs), torch.zeros_like(values[0])))
                row = [0.0] * len(closed)
                for n, weight in zip(places, weights, strict=False):
                    row[n] = float(weight.detach())
                rows.append(row)
            said.append(self.oracle_terms(index, rows, chosen))
        terms = call.get("terms")
        if terms is not None and said:
            terms |= {name: torch.stack([one[name] for one in said]) for name in said[0]}
        return torch.stack(found).unflatten(0, (length, heads)).transpose(0, 1), None

    def oracle_choose(
        self,
        t: int,
        entries: Mapping[str, list[list[Tensor]]],
        closed: list[bool],
        call: OracleOptions,
    ) -> tuple[list[bool], list[Tensor]]:
        """`choose` for one query."""
        return closed, []

    def oracle_terms(
        self, index: list[Tensor], heads: list[list[float]], chosen: list[bool]
    ) -> dict[str, Tensor]:
        """`terms` of one query, from the weights of each head."""
        return {}

    def _oracle_entries(self, name: str, source: Source) -> list[list[Float[Tensor, " E"]]]:
        """Entries of each head, from what each number of each key weighs."""
        given = {"key": source.key, "value": source.value}
        x = given[name] if name in given else leaf(source.extras, name)
        bias, gates = self.biases()[name], leaf(source.extras, f"{name}_gate")
        width, found = x.shape[3], []
        for h in range(x.shape[1]):
            gate, blocks = gates[0, h * gates.shape[1] // x.shape[1]], []
            for n in range(x.shape[2] // self.size):
                terms = [(n * self.size + i, i, 0) for i in range(self.size)]
                if self.series == 2 and n > 0:
                    terms += [((n - 1) * self.size + i, i, 1) for i in range(self.size)]
                entry = []
                for e in range(width):
                    logits = [gate[s, k * width + e] + bias[h, i, k, e] for s, i, k in terms]
                    weights = oracle_softmax(torch.stack(logits), [True] * len(terms))
                    entry.append(
                        sum(w * x[0, h, s, e] for w, (s, _, _) in zip(weights, terms, strict=True))
                    )
                blocks.append(torch.stack([torch.as_tensor(one) for one in entry]))
            found.append(blocks)
        return found


def _real(carried: Tree, name: str, tree: Tree) -> Bool[Tensor, "B n"]:
    """Which of some keys or entries are real; all of them where there has been no padding."""
    if name in carried:
        return leaf(carried, name)
    key = leaf(tree, "key")
    return torch.ones(key.shape[0], key.shape[2], dtype=torch.bool, device=key.device)


def _last(tree: Tree, count: int) -> dict[str, Tensor | Tree]:
    """The last keys alone, without the memory of those before."""

    def cut(x: Tensor) -> Tensor:
        return x[:, :, max(0, x.shape[2] - count) :].clone()

    return tree_map(cut, tree)
