"""Components put together: mask, energy, normalize, post-softmax weight, read, update.

The chain knows axes, not components. Three grades of sequence: without history all queries go
through at once; a normalizer may scan over queries by itself; history makes the chain step.
"""

from collections.abc import Mapping
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
from bench.api.position import Position
from bench.api.readout import Readout
from bench.api.score import Score
from bench.api.shapes import Allowed, Features, Mixed, Weights
from bench.api.source import Memory, Source, State, Tree, branch
from bench.api.stream import stream_hard
from bench.api.variant import Variant

GATHER_FROM = 24
"""Sources this many times as long as a window are read by copying windows out; shorter ones are
faster as a mask (one CPU core, forward and backward; they cross between 15 and 50)."""
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
        self._fusable = self._can_be_fused()
        # a position that reads queries or keys has tables of their width
        by_places = not any(position.energy_reads for position in positions)
        self.any_width = self._fusable and score.any_width and by_places
        self._gatherable = self._can_be_gathered()
        self._forgets = self._can_forget()
        self._declare_cost()
        if impl == "sdpa" and not self._fusable:
            raise Refused(
                "impl=sdpa needs a dot-product score, softmax over allowed keys, the full mask, "
                "a weighted sum, and no history."
            )

    @property
    def components(self) -> tuple[Component, ...]:
        """One of each axis, and those of the stacked axes behind them."""
        single = (self.score, self.mask, self.normalizer, self.readout)
        return (*single, *self.positions, *self.histories)

    def _is_plain_softmax(self) -> bool:
        """Whether nothing but energies of queries and keys goes into a softmax."""
        return self.normalizer.softmax_temperature is not None and not self._has_features

    def _can_be_fused(self) -> bool:
        """Whether a fused kernel computes the same; nothing may look at single weights."""
        return (
            self._is_plain_softmax()
            and "weighted_sum" in self.readout.gives
            and self.mask.kind == "full"
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
        width, impl = self.mask.window_width, self.impl
        if self._gatherable and width is not None and impl == "auto":
            self.exponents_from = GATHER_FROM * width
            return
        self.time_exponent = max(part.time_exponent for part in self.components)
        # PyTorch's kernels hold no matrix where nothing is added
        adds = any(p.changes_energy for p in self.positions)
        if impl == "eager" or not self._fusable or adds:
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
        recent = self.mask.recent if self._forgets else None
        limit = None if recent is None else self.mask.sinks + recent + recent // LATE
        return self.trim(cache).extend(new, limit=limit)

    def trim(self, cache: Memory) -> Memory:
        """Keep the keys that the mask still shows to the next query, and some for a while."""
        recent, sinks = self.mask.recent, self.mask.sinks
        if recent is None or not self._forgets:
            return cache
        # the next query sees one key less than the window, beside its own
        return cache.forget(sinks, recent - 1, recent // LATE)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Run the chain; step by step where weights feed back into the score."""
        if self.steps and call.query.shape[2] > 1:
            return self._mix_stepwise(call, carried)
        plain = not want_weights and call.edit is None
        if self._fusable and plain and self.impl != "eager":
            return MixResult(self._fused(call), None, carried, {})
        if self.impl == "sdpa" and not plain:
            raise Refused("impl=sdpa cannot return weights; ask without weights or use eager.")
        if self.impl == "auto" and self._gathers(call):
            return self._mix_gathered(call, want_weights)
        return self._mix_at_once(call, carried)

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

    def _mix_stepwise(self, call: Call, carried: Tree) -> MixResult:
        found: list[MixResult] = []
        for index, query in enumerate(call.query.split(1, 2)):
            found.append(self.mix(call.one(index, query), carried, want_weights=True))
            carried = found[-1].carried
        weights = [step.weights for step in found if step.weights is not None]
        terms = {
            name: torch.cat([step.terms[name] for step in found], 1) for name in found[0].terms
        }
        output = torch.cat([step.output for step in found], 2)
        return MixResult(output, torch.cat(weights, 2), carried, terms)

    def _fused(self, call: Call) -> Mixed:
        form = self.score.dot_form(call)
        assert form is not None, "a score that gives dot_form must have one"
        query, key, scale = form
        temperature = self.normalizer.softmax_temperature
        assert temperature is not None, "only a softmax is fused"
        bias: Tensor | None = None
        for position in self.positions:
            if position.changes_energy:
                bias = position.energy(call) if bias is None else bias + position.energy(call)
        if temperature != 1:
            scale = scale / temperature
            bias = None if bias is None else bias / temperature
        source = call.memory.source
        square = call.offset == 0 and query.shape[2] == key.shape[2]
        # is_causal aligns top-left, which is right only where the queries are all of the keys
        plain = bias is None and source.mask is None and (not call.causal or square)
        mask = None if plain else _attention_mask(call.allowed, bias, query)
        # values that are the front of the keys are read with them, which copies neither
        whole = source.shared > 0 and key is source.key
        value = key if whole else source.value
        read = fused_softmax(
            query, key, value, mask=mask, causal=plain and call.causal, scale=scale
        )
        return read[..., : source.shared] if whole else read

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


def _attention_mask(allowed: Allowed | None, bias: Tensor | None, query: Tensor) -> Tensor | None:
    if bias is None:
        return allowed
    if allowed is None:
        return bias
    return bias.masked_fill(~allowed, float("-inf"))
