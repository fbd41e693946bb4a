"""Components put together: mask, energy, normalize, post-softmax weight, read, update.

The chain knows axes, not components. Three grades of sequence: without history all queries go
through at once; a normalizer may scan over queries by itself; history makes the chain step.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.blocks import block_length
from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.component import Component
from bench.api.errors import Refused
from bench.api.fused_chain import can_be_fused, holds_a_matrix, read_fused
from bench.api.gathered import fold_call, fold_windows, spread, unfold
from bench.api.history import History
from bench.api.impl import Impl
from bench.api.inputs import all_inputs
from bench.api.mask import Mask
from bench.api.normalizer import Normalizer
from bench.api.oracle import chain_oracle
from bench.api.parts import Answer, mix_in_parts, part_length
from bench.api.position import Position
from bench.api.readout import Readout
from bench.api.score import Score
from bench.api.shapes import Allowed, Features, Mixed, Query, Weights
from bench.api.source import Memory, Source, State, Tree, branch
from bench.api.stream import stream_hard
from bench.api.variant import Variant

BLOCKS_FROM = 3
"""Sequences this many times as long as a block with its reach show linear growth."""
LATE = 8
"""A cache of the last keys holds one key too many for so many of them, and then forgets these at
once, so that a decode step copies eight keys and not all of a window."""


class Chain(Variant):
    """Attention made of one component an axis."""

    gives = frozenset({"weights"})
    codes = ("auto", "eager", "sdpa")
    editable = True
    # what windows that are copied out and fused code cost; other parts say more
    time_exponent = 1.0
    memory_exponent = 1.0

    def __init__(
        self,
        dims: Dims,
        *,
        score: Score,
        mask: Mask,
        normalizer: Normalizer,
        readout: Readout,
        positions: tuple[Position, ...] = (),
        histories: tuple[History, ...] = (),
        impl: Impl = "auto",
    ) -> None:
        super().__init__(dims, impl)
        self.score = score
        self.mask = mask
        self.normalizer = normalizer
        self.readout = readout
        self.histories = histories
        self.stack_positions(positions, histories)
        for index, history in enumerate(histories):
            history.branch = f"history{index}"
        parts = {part.branch: part for part in self.components}
        self.key_inputs = all_inputs({name: part.key_inputs for name, part in parts.items()})
        self.query_inputs = all_inputs({name: part.query_inputs for name, part in parts.items()})
        self.steps = any(history.feeds_back for history in histories)
        self.default_read: Read = normalizer.default_read
        # in the order in which the normalizer names them, and what only the readout has behind
        self.reads: tuple[Read, ...] = tuple(dict.fromkeys(normalizer.reads + readout.reads))
        self.has_features = bool(histories) or any(p.gives_features for p in positions)
        self._fusable = can_be_fused(self)
        # a position that reads queries or keys has tables of their width
        by_places = not any(position.energy_reads for position in positions)
        everything = mask.kind == "full"
        plain = self._fusable and everything and not normalizer.has_sink
        self.any_width = plain and score.any_width and by_places
        self._gatherable = self._can_be_gathered()
        self._forgets = self._can_forget()
        self._declare_cost()
        if impl == "sdpa" and not self._fusable:
            raise Refused(
                "impl=sdpa needs a dot-product score, softmax over allowed keys, a mask without "
                "weights of its own, a weighted sum, and no history."
            )

    @property
    def components(self) -> tuple[Component, ...]:
        """One of each axis, and those of the stacked axes behind them."""
        single = (self.score, self.mask, self.normalizer, self.readout)
        return (*single, *self.positions, *self.histories)

    def _is_plain_softmax(self) -> bool:
        """Whether nothing but energies of queries and keys goes into a softmax."""
        return self.normalizer.softmax_temperature is not None and not self.has_features

    def _can_be_gathered(self) -> bool:
        """Whether windows may be copied out.

        A copied window has forgotten where its keys stood, which draws go by.
        """
        chosen = self.normalizer.window_width is not None and not self.mask.weighs
        return (
            (self._is_plain_softmax() or (chosen and not self.has_features))
            and "key_local" in self.score.gives
            and not self._moved
            and "train" not in self.readout.reads
        )

    def _can_forget(self) -> bool:
        """Whether a cache may lose old keys: it has other lengths then, which nobody may go by.

        A mask that lets all keys be seen, or those at a distance, goes by none; others may count
        keys, or need far ones.
        """
        return (
            self.normalizer.visible_alone
            and (self.mask.kind == "full" or self.mask.reach is not None)
            and not self.has_features
            and "dot_form" in self.score.gives
            and "weighted_sum" in self.readout.gives
            and all(p.by_place for p in self.positions if p.changes_energy or p.changes_output)
        )

    def _declare_cost(self) -> None:
        """Set the exponents of time and memory by the code that answers without weights."""
        width, impl, reach = self.window_width, self.impl, self.mask.reach
        adds = self.adds_to_energies
        if self._fusable and reach is not None and not adds and impl != "eager":
            self.exponents_from = BLOCKS_FROM * (reach + block_length(reach))
            return
        # what looks at keys to choose a window looks at all of them
        by_places = self.mask.kind == "window" and self.normalizer.window_width is None
        if self._gatherable and by_places and width is not None and impl == "auto":
            self.exponents_from = round(self.gather_from * width)
            return
        self.time_exponent = max(part.time_exponent for part in self.components)
        # PyTorch's kernels hold no matrix where nothing is added or masked
        if impl == "eager" or not self._fusable or adds or self.mask.kind != "full":
            self.memory_exponent = max(part.memory_exponent for part in self.components)

    def prepare(self, source: Source) -> Memory:
        """Let every component prepare its branch."""
        return Memory(source, {part.branch: part.prepare(source) for part in self.components})

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """Let every component that carries something start its branch."""
        everyone: tuple[Component, ...] = (self.normalizer, *self.histories)
        if self.mask.carries:
            everyone = (*everyone, self.mask)
        return State(carried={part.branch: part.start(memory, like) for part in everyone})

    def remember(self, cache: Memory, new: Memory) -> Memory:
        """Join caches; keys that no query reads any more are forgotten, an eighth of them late."""
        reach = self._kept_reach()
        limit = None if reach is None else self.mask.sinks + reach + 1 + _late(reach)
        return self.trim(cache).extend(new, limit=limit)

    def trim(self, cache: Memory) -> Memory:
        """Keep the keys that the next query may still read, and some for a while."""
        reach, sinks = self._kept_reach(), self.mask.sinks
        if reach is None:
            return cache
        return cache.forget(sinks, reach, _late(reach))

    def _kept_reach(self) -> int | None:
        """How far back a query reads, by its mask and by its normalizer; None for all keys."""
        if not self._forgets:
            return None
        found = [one for one in (self.mask.reach, self.normalizer.reach) if one is not None]
        return min(found, default=None)

    def opened(
        self,
        memory: Memory,
        query: Query,
        written: Callable[[Source, Query], Source] | None,
        *,
        plain: bool,
    ) -> Memory:
        """Keys and values as a call reads them; those of a single query may stay packed."""
        if plain and self.any_width and self.impl != "eager" and query.shape[2] == 1:
            packing = memory.source.packing
            if packing is not None and packing.reads_packed:
                return memory
        return super().opened(memory, query, written, plain=plain)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Run the chain, behind what the mask remembers of the keys."""
        if not self.mask.carries:
            return self._mix(call, carried, want_weights)
        name = self.mask.branch
        known = self.mask.advance(call, branch(carried, name))
        found = self._mix(replace(call, chosen_by=known), carried, want_weights)
        return found._replace(carried={**found.carried, name: known})

    def _mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Run the chain; step by step where weights feed back into the score."""
        if self.steps and call.query.shape[2] > 1:
            return mix_in_parts(call, carried, 1, self._step, want_weights=True)
        plain = not want_weights and call.edit is None
        if self.impl == "sdpa" and not plain:
            raise Refused("impl=sdpa cannot return weights; ask without weights or use eager.")
        answer = self._code(call, plain=plain)
        if plain and self.impl != "eager" and self._holds_a_matrix(call, answer):
            size = part_length(call, self._numbers_of_one(call), self.part_numbers)
            return mix_in_parts(call, carried, size, answer, past_alone=True)
        return answer(call, carried)

    def _code(self, call: Call, *, plain: bool) -> Answer:
        """What computes this call fastest.

        Args:
            call: The call.
            plain: Whether nothing but the output is wanted.
        """
        fused = plain and self._fusable and self.impl != "eager"
        copies = self.normalizer.has_sink or self.score.copies_keys
        if copies and call.query.shape[2] == 1 and self.impl == "auto":
            # keys that are one number wider are copies of all keys, and a row of energies is not
            fused = False
        # blocks read windows that go by places alone faster than a copy of each window
        in_blocks = fused and self.mask.reach is not None
        if self.impl == "auto" and self._gathers(call) and not in_blocks:
            return partial(self._mix_gathered, want_weights=not plain)
        return self._mix_fused if fused else self._mix_at_once

    def _holds_a_matrix(self, call: Call, answer: Answer) -> bool:
        return answer != self._mix_fused or holds_a_matrix(self, call)

    def _numbers_of_one(self, call: Call) -> int:
        """Numbers that a single query holds: an energy for each key, or a window of vectors."""
        rows, heads, _, width = call.query.shape
        keys = call.memory.num_keys
        listed = self.normalizer.window_width is None  # which may list no windows after all
        if listed and self._gathers(call) and self.mask.window_width is not None:
            keys = 2 * width * self.mask.window_width
        return rows * heads * max(1, keys)

    def _gathers(self, call: Call) -> bool:
        """Whether windows are so small that copying them out pays, and nobody edits weights."""
        width = self.window_width
        if not self._gatherable or width is None or call.edit is not None:
            return False
        if call.memory.forgotten:  # windows are listed by the places of keys
            return False
        return call.memory.num_keys >= self.gather_from * width

    def _mix_at_once(self, call: Call, carried: Tree) -> MixResult:
        seen = {f.branch: f.advance(call, branch(carried, f.branch)) for f in self.histories}
        energy = self.score.energy(call, self._features(call, seen))
        for position in self.positions:
            if position.changes_energy:
                energy = energy + position.energy(call)
        allowed, log_post_weight = self.window(call)
        state = branch(carried, "normalizer")
        normalized = self.normalizer.normalize(energy, allowed, state, call)
        weights = normalized.weights
        if log_post_weight is not None:
            weights = weights * log_post_weight.exp()
        if call.edit is not None:
            weights = call.edit(weights, call)
        output = self._read(call, weights, allowed)
        after: dict[str, Tensor | Tree] = {"normalizer": normalized.state}
        terms = normalized.terms
        for history in self.histories:
            after[history.branch] = history.update(call, weights, seen[history.branch])
            terms = terms | history.terms(call, seen[history.branch])
        return MixResult(output, weights, after, terms)

    def window(self, call: Call) -> tuple[Allowed | None, Float[Tensor, "B Hq L S"] | None]:
        """Keys that the mask allows and the score knows, and the mask's log post-softmax weight."""
        allowed, log_post_weight = self.mask.window(call)
        scored = self.score.scored(call)
        if scored is not None:
            allowed = scored if allowed is None else allowed & scored
        return allowed, log_post_weight

    def _mix_gathered(self, call: Call, carried: Tree, *, want_weights: bool) -> MixResult:
        """Every query as a row of its own, whose keys are its window."""
        length = call.query.shape[2]
        if self.normalizer.window_width is None:
            windows = self.mask.gather(call)
        else:
            chosen = self.normalizer.gather(call, self.window(call)[0])
            if chosen is None:
                return self._mix_at_once(call, carried)
            windows = chosen
        inner = fold_call(call, windows.keys, (self.score.branch, self.readout.branch))
        allowed = fold_windows(windows.allowed)
        energy = self.score.energy(inner, None)
        normalized = self.normalizer.normalize(energy, allowed, {}, inner)
        weights = normalized.weights
        if windows.log_post_weight is not None:
            weights = weights * fold_windows(windows.log_post_weight).exp()
        output = unfold(self.readout.read(inner, weights, allowed), length)
        terms = {name: x.view(-1, length) for name, x in normalized.terms.items()}
        if not want_weights:
            return MixResult(output, None, {"normalizer": {}}, terms)
        num_keys = call.memory.num_keys
        found = spread(unfold(weights, length), windows.keys, num_keys)
        return MixResult(output, found, {"normalizer": {}}, terms)

    def _read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        output = self.readout.read(call, weights, allowed)
        for position in self.positions:
            if position.changes_output:
                output = output + position.output(call, weights)
        return output

    def _features(self, call: Call, seen: Mapping[str, Tree]) -> Features | None:
        if not self.has_features:
            return None
        parts = [history.features(call, seen[history.branch]) for history in self.histories]
        parts += [position.features(call) for position in self.positions if position.gives_features]
        if len(parts) == 1:
            return parts[0]
        shape = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return torch.cat([part.expand(*shape, -1) for part in parts], -1)

    def _mix_fused(self, call: Call, carried: Tree) -> MixResult:
        return MixResult(read_fused(self, call), None, carried, {})

    def _step(self, call: Call, carried: Tree) -> MixResult:
        """A single query whose weights go into the next one."""
        return self.mix(call, carried, want_weights=True)

    def stream(
        self, query: Float[Tensor, "B Hq 1 Eq"], memory: Memory, pointer: Int[Tensor, "B Hq"]
    ) -> tuple[Float[Tensor, "B Hq 1 Ev"], Int[Tensor, "B Hq"], Int[Tensor, "B Hq"]]:
        """Read keys one at a time from the pointer on until one stops the search."""
        if "stream" not in self.normalizer.gives:
            return super().stream(query, memory, pointer)
        scores = (self.score, *self.normalizer.own_scores)
        if (
            any("key_local" not in score.gives for score in scores)
            or "weighted_sum" not in self.readout.gives
            or self.mask.kind != "full"
            or self._moved
            or self.has_features
        ):
            raise Refused(
                "streaming needs a score that looks at one key at a time, the full mask, "
                "a weighted sum, and neither positions inside attention nor history."
            )
        return stream_hard(self, query, memory, pointer)

    @property
    def window_width(self) -> int | None:
        """Keys of a window, where windows can be listed."""
        chosen = self.normalizer.window_width
        return self.mask.window_width if chosen is None else chosen

    @property
    def _moved(self) -> bool:
        """Whether positions act inside attention."""
        return any(p.changes_energy or p.changes_output for p in self.positions)

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """The chain of the components' own loop twins."""
        return chain_oracle(self, query, source, read, **call)


def _late(reach: int) -> int:
    """Keys too many that a window may keep."""
    return (reach + 1) // LATE
