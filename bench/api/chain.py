"""Components put together: mask, energy, normalize, post-softmax weight, read, update.

The chain knows axes, not components. Three grades of sequence: without history all queries go
through at once; a normalizer may scan over queries by itself; history makes the chain step.
"""

from collections.abc import Callable, Mapping
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.blocks import block_length, blocks_pay, read_in_blocks
from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.component import Component
from bench.api.errors import Refused
from bench.api.fused import fused_softmax
from bench.api.gathered import fold_call, fold_windows, spread, unfold
from bench.api.history import History
from bench.api.impl import Impl
from bench.api.inputs import all_inputs
from bench.api.mask import Mask
from bench.api.normalizer import Normalizer
from bench.api.oracle import chain_oracle
from bench.api.packing import Packing
from bench.api.position import Position
from bench.api.readout import Readout
from bench.api.score import Score
from bench.api.shapes import Allowed, Features, Mixed, Query, Weights
from bench.api.source import Memory, Source, State, Tree, branch
from bench.api.stream import stream_hard
from bench.api.variant import Variant

GATHER_FROM = 24
"""Sources this many times as long as a window are read by copying windows out; shorter ones are
faster as a mask (one CPU core, forward and backward; they cross between 15 and 50)."""
BLOCKS_FROM = 3
"""Sequences this many times as long as a block with its reach show linear growth."""
PART = 2**22
"""Energies that are held at once where neither weights nor gradients are wanted: 17 MB in float32.
With 4,096 keys a processor takes about 0.7 of the time that it takes with all of them."""
ON_A_GPU = 16
"""Parts are so many times as large on a GPU, where starting an operation takes longer than a small
one itself (not timed)."""
LATE = 8
"""A cache of the last keys holds one key too many for so many of them, and then forgets these at
once, so that a decode step copies eight keys and not all of a window."""


class Chain(Variant):
    """Attention made of one component an axis."""

    gives = frozenset({"weights"})
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
        self._has_features = bool(histories) or any(p.gives_features for p in positions)
        self.part_energies = PART
        self._adds = any(position.changes_energy for position in positions)
        self._fusable = self._can_be_fused()
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
        return self.normalizer.softmax_temperature is not None and not self._has_features

    def _is_softmax_with_a_sink(self) -> bool:
        """Whether nothing goes into it but those and a key without a value."""
        return self.normalizer.has_sink and not self._has_features

    def _can_be_fused(self) -> bool:
        """Whether a fused kernel computes the same; nothing may look at single weights."""
        return (
            (self._is_plain_softmax() or self._is_softmax_with_a_sink())
            and "weighted_sum" in self.readout.gives
            and not self.mask.weighs
            and not any(p.changes_output for p in self.positions)
            and "dot_form" in self.score.gives
        )

    def _can_be_gathered(self) -> bool:
        """Whether windows may be copied out.

        A copied window has forgotten where its keys stood, which draws go by.
        """
        return (
            self._is_plain_softmax()
            and "key_local" in self.score.gives
            and not self._moved
            and "train" not in self.readout.reads
        )

    def _can_forget(self) -> bool:
        """Whether a cache may lose old keys: it has other lengths then, which nobody may go by."""
        return (
            self.normalizer.visible_alone
            and not self._has_features
            and "dot_form" in self.score.gives
            and "weighted_sum" in self.readout.gives
            and all(p.by_place for p in self.positions if p.changes_energy or p.changes_output)
        )

    def _declare_cost(self) -> None:
        """Set the exponents of time and memory by the code that answers without weights."""
        width, impl, reach = self.mask.window_width, self.impl, self.mask.reach
        if self._fusable and reach is not None and not self._adds and impl != "eager":
            self.exponents_from = BLOCKS_FROM * (reach + block_length(reach))
            return
        if self._gatherable and width is not None and impl == "auto":
            self.exponents_from = GATHER_FROM * width
            return
        self.time_exponent = max(part.time_exponent for part in self.components)
        # PyTorch's kernels hold no matrix where nothing is added or masked
        if impl == "eager" or not self._fusable or self._adds or self.mask.kind != "full":
            self.memory_exponent = max(part.memory_exponent for part in self.components)

    def prepare(self, source: Source) -> Memory:
        """Let every component prepare its branch."""
        return Memory(source, {part.branch: part.prepare(source) for part in self.components})

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """Let every component that carries something start its branch."""
        everyone = (self.normalizer, *self.histories)
        return State(carried={part.branch: part.start(memory, like) for part in everyone})

    def remember(self, cache: Memory, new: Memory) -> Memory:
        """Join caches; keys that the mask shows no more are forgotten, an eighth of them late."""
        reach = self.mask.reach if self._forgets else None
        limit = None if reach is None else self.mask.sinks + reach + 1 + _late(reach)
        return self.trim(cache).extend(new, limit=limit)

    def trim(self, cache: Memory) -> Memory:
        """Keep the keys that the mask still shows to the next query, and some for a while."""
        reach, sinks = self.mask.reach, self.mask.sinks
        if reach is None or not self._forgets:
            return cache
        return cache.forget(sinks, reach, _late(reach))

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
            if packing is not None and type(packing).read is not Packing.read:
                return memory
        return super().opened(memory, query, written, plain=plain)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Run the chain; step by step where weights feed back into the score."""
        if self.steps and call.query.shape[2] > 1:
            return self._mix_in_parts(call, carried, 1, self._step)
        plain = not want_weights and call.edit is None
        if self.impl == "sdpa" and not plain:
            raise Refused("impl=sdpa cannot return weights; ask without weights or use eager.")
        fused = plain and self._fusable and self.impl != "eager"
        if self.normalizer.has_sink and call.query.shape[2] == 1:
            fused = False  # a key more is a copy of all keys, which a row of energies is not
        gathers = self.impl == "auto" and self._gathers(call)
        # blocks read windows that go by places alone faster than a copy of each window
        if gathers and not (fused and self.mask.reach is not None):
            return self._mix_gathered(call, want_weights)
        answer = self._mix_fused if fused else self._mix_at_once
        size = call.query.shape[2]
        if plain and not (fused and self._fused_without_a_matrix(call)):
            size = self._part_length(call)
        if size < call.query.shape[2]:
            return self._mix_in_parts(call, carried, size, answer)
        return answer(call, carried)

    def _part_length(self, call: Call) -> int:
        """Queries that are answered together where each has a row of a matrix."""
        rows, heads, length, _ = call.query.shape
        # gradients keep the rows of all parts, and compiled code would hold every part
        if self.impl == "eager" or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return length
        of_one = rows * heads * call.memory.source.key.shape[2]
        most = self.part_energies * (1 if call.query.device.type == "cpu" else ON_A_GPU)
        # two parts save no time
        return length if of_one * length <= 2 * most else max(1, most // of_one)

    def _gathers(self, call: Call) -> bool:
        """Whether windows are so small that copying them out pays, and nobody edits weights."""
        width = self.mask.window_width
        if not self._gatherable or width is None or call.edit is not None:
            return False
        if call.memory.forgotten:  # windows are listed by the places of keys
            return False
        return call.memory.source.key.shape[2] >= GATHER_FROM * width

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

    def _mix_gathered(self, call: Call, want_weights: bool) -> MixResult:
        """Every query as a row of its own, whose keys are its window."""
        length = call.query.shape[2]
        windows = self.mask.gather(call)
        inner = fold_call(call, windows.keys, (self.score.branch, self.readout.branch))
        allowed = fold_windows(windows.allowed)
        weights = self.normalizer.normalize(
            self.score.energy(inner, None), allowed, {}, inner
        ).weights
        if windows.log_post_weight is not None:
            weights = weights * fold_windows(windows.log_post_weight).exp()
        output = unfold(self.readout.read(inner, weights, allowed), length)
        if not want_weights:
            return MixResult(output, None, {"normalizer": {}}, {})
        num_keys = call.memory.source.key.shape[2]
        found = spread(unfold(weights, length), windows.keys, num_keys)
        return MixResult(output, found, {"normalizer": {}}, {})

    def _read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        output = self.readout.read(call, weights, allowed)
        for position in self.positions:
            if position.changes_output:
                output = output + position.output(call, weights)
        return output

    def _features(self, call: Call, seen: Mapping[str, Tree]) -> Features | None:
        if not self._has_features:
            return None
        parts = [history.features(call, seen[history.branch]) for history in self.histories]
        parts += [position.features(call) for position in self.positions if position.gives_features]
        if len(parts) == 1:
            return parts[0]
        shape = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return torch.cat([part.expand(*shape, -1) for part in parts], -1)

    def _step(self, call: Call, carried: Tree) -> MixResult:
        """A single query whose weights go into the next one."""
        return self.mix(call, carried, want_weights=True)

    def _mix_in_parts(
        self, call: Call, carried: Tree, size: int, answer: Callable[[Call, Tree], MixResult]
    ) -> MixResult:
        """Some queries after the others, all with the keys of the whole call."""
        found: list[MixResult] = []
        for index, query in enumerate(call.query.split(size, 2)):
            found.append(answer(call.part(index * size, query), carried))
            carried = found[-1].carried
        weights = [step.weights for step in found if step.weights is not None]
        terms = {
            name: torch.cat([step.terms[name] for step in found], 1) for name in found[0].terms
        }
        output = torch.cat([step.output for step in found], 2)
        return MixResult(output, torch.cat(weights, 2) if weights else None, carried, terms)

    def _mix_fused(self, call: Call, carried: Tree) -> MixResult:
        return MixResult(self._fused(call), None, carried, {})

    def _reads_in_blocks(self, call: Call) -> bool:
        """Whether windows are read block by block."""
        reach = self.mask.reach
        return reach is not None and not self._adds and blocks_pay(call, reach)

    def _needs_no_mask(self, call: Call) -> bool:
        """Whether every key is seen, or every one that is not in the future."""
        if self._adds or self.mask.kind != "full" or call.memory.source.mask is not None:
            return False
        # is_causal aligns top-left, which is right only where the queries are all of the keys
        square = call.offset == 0 and call.query.shape[2] == call.memory.source.key.shape[2]
        return not call.causal or square

    def _fused_without_a_matrix(self, call: Call) -> bool:
        return self._reads_in_blocks(call) or self._needs_no_mask(call)

    def _fused(self, call: Call) -> Mixed:
        form = self.score.dot_form(call)
        assert form is not None, "a score that gives dot_form must have one"
        query, key, scale = form
        normalizer = self.normalizer
        temperature = normalizer.softmax_temperature or 1.0
        sink = normalizer.sink_energy(query) if normalizer.has_sink else None
        scale = scale / temperature
        source = call.memory.source
        # values that are the front of the keys are read with them, which copies neither
        whole = source.shared > 0 and key is source.key
        value = key if whole else source.value
        if source.packing is not None:
            mask = None if self._needs_no_mask(call) else self._attention_mask(call, temperature)
            return source.packing.read(query, key, mask=mask, scale=scale)
        if self._reads_in_blocks(call):
            read = read_in_blocks(
                query, key, value, call=call, mask=self.mask, scale=scale, sink=sink
            )
        else:
            plain = self._needs_no_mask(call)
            mask = None if plain else self._attention_mask(call, temperature)
            read = fused_softmax(
                query, key, value, mask=mask, causal=plain and call.causal, scale=scale, sink=sink
            )
        return read[..., : source.shared] if whole else read

    def _attention_mask(self, call: Call, temperature: float) -> Tensor | None:
        """True where a key is seen, or what is added to its energy."""
        allowed, _ = self.window(call)
        bias: Tensor | None = None
        for position in self.positions:
            if position.changes_energy:
                bias = position.energy(call) if bias is None else bias + position.energy(call)
        if bias is None:
            return allowed
        if temperature != 1:
            bias = bias / temperature
        return bias if allowed is None else bias.masked_fill(~allowed, float("-inf"))

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
            or self._has_features
        ):
            raise Refused(
                "streaming needs a score that looks at one key at a time, the full mask, "
                "a weighted sum, and neither positions inside attention nor history."
            )
        return stream_hard(self, query, memory, pointer)

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
