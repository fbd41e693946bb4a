"""Native sparse attention: means of blocks, the blocks whose means weigh most, and a near window.

Yuan et al., 2025, "Native sparse attention: hardware-aligned and natively trainable sparse
attention", https://arxiv.org/abs/2502.11089, section 3. A gate for each branch comes from the state
that asks.

Deviations: blocks are compressed by their mean and do not overlap, where the paper has a small
network and half a block of overlap; one set of keys and values serves the three branches. Keys of
chosen blocks are copied out by a step of decoding, and by long sequences where no gradient is
wanted; else others are hidden. The own block and the one before it are
always chosen, and the first one. Positions that add to energies add to that of a mean the mean of
what they add to its keys, because the energy of a mean is the mean of energies. A step then
computes a number for every key.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Unpack

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.fused import fused_softmax
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.parts import mix_in_parts, part_length
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed
from bench.api.source import Memory, Source, State, Tree, leaf, leaves
from variants.block_means import block_means
from variants.mechanisms.biased import Biased, biased
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY

GATES = "nsa_gates"
"""Input of each query: a number for each branch, of which the gate is the sigmoid."""
MEAN_KEY, MEAN_VALUE, REAL = "mean_key", "mean_value", "real"
"""Branches of the state: means of the closed blocks, and whether they hold any real token."""

Added = Float[Tensor, "#B Hq L K"] | None
"""What positions add to energies."""


@dataclass(frozen=True, kw_only=True)
class NsaConfig(Config):
    """Options of native sparse attention."""

    block: Annotated[int, IntRange(2, 64, log=True)] = 8
    """Keys of a block."""
    chosen: Annotated[int, IntRange(4, 16)] = 5
    """Blocks that are read key by key; the first, the own one and the one before it among them."""
    window: Annotated[int, IntRange(2, 512, log=True)] = 8
    """Last keys that are read in any case, the query's own among them (keys)."""

    def __post_init__(self) -> None:
        """Check all three."""
        if min(self.block, self.window) < 1 or self.chosen < 3:
            raise InvalidConfig(
                "nsa: block and window must be at least 1 and chosen at least 3, "
                f"got {self.block}, {self.window} and {self.chosen}."
            )


@register(
    "mechanism",
    "nsa",
    title="Native sparse attention (NSA)",
    config=NsaConfig,
    citation=Citation(
        text="Yuan et al., 2025", url="https://arxiv.org/abs/2502.11089", where="section 3"
    ),
    cost=2.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Yuan et al. report the quality of full attention at a fraction of its time for texts of "
        "64 thousand tokens. Sequences of this task have at most 128 symbols, so nothing has to be "
        "left out. Costs are in the tables of speed."
    ),
)
class Nsa(Biased):
    """g_1 softmax over means of closed blocks + g_2 over chosen blocks + g_3 over the window.

    Query heads that share keys choose the same blocks, by the sum of their weights of the means. A
    query that comes before the first block is closed reads nothing from means. A query
    takes O((S / block + chosen * block + window) E), with the means of blocks kept; many of them
    that want a gradient, or have a short sequence, O(S E) each.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"jumps"})
    # its heads share what is copied, so that copies pay earlier
    gather_from = 24
    unsupported = CAUSAL_ONLY

    def __init__(self, config: NsaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.size, self.chosen, self.near = config.block, config.chosen, config.window
        self.scale = dims.key_width**-0.5
        self.query_inputs = {GATES: SlotInput(3)}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """No block is closed."""

        def none(heads: int, width: int) -> Tensor:
            return torch.zeros(like.rows, heads, 0, width, dtype=like.dtype, device=like.device)

        return State(
            carried={
                MEAN_KEY: none(self.dims.kv_heads, self.dims.key_width),
                MEAN_VALUE: none(self.dims.num_value_heads, self.dims.value_width),
                REAL: torch.zeros(like.rows, 0, dtype=torch.bool, device=like.device),
            }
        )

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Three softmaxes, and their gates."""
        carried = self._with_closed(call, carried)
        rows, heads, length, width = call.query.shape
        read = max(leaf(carried, REAL).shape[1], 2 * width * self.chosen * self.size)
        size = length
        if self.impl == "auto":
            size = part_length(call, rows * heads * read, self.part_numbers)
        return mix_in_parts(call, carried, max(1, size), self._mix_part)

    def _gathers(self, call: Call) -> bool:
        """Whether chosen keys are copied out; a single query always has them copied."""
        if call.query.shape[2] == 1:
            return True
        if self.impl == "eager" or torch.is_grad_enabled():
            return False
        return call.memory.num_keys >= self.gather_from * self.chosen * self.size

    def _mix_part(self, call: Call, carried: Tree) -> MixResult:
        """Some queries, with the means of all blocks."""
        real = leaf(carried, REAL)
        numbers = torch.arange(real.shape[1], device=real.device)
        closed = (numbers + 1) * self.size <= call.position[:, None] + 1
        closed = closed & real[:, None, None]
        more = self.position_energy(call)
        coarse = self._energy(call.query, leaf(carried, MEAN_KEY))
        coarse = masked_softmax(biased(coarse, self._of_means(call, more, real)), closed)
        means = coarse @ expand_heads(leaf(carried, MEAN_VALUE), self.dims.heads)
        # the block that is open can be chosen, and has no mean
        blocks = -(-call.memory.num_keys // self.size)
        still = blocks - real.shape[1]
        weights, closed = (functional.pad(x, (0, still)) for x in (coarse.detach(), closed))
        fine = self._gathered if self._gathers(call) else self._hidden
        every = (means, fine(call, weights, closed, more), self._near(call, more))
        gates = torch.sigmoid(leaf(call.extras, GATES)).transpose(1, 2).unsqueeze(3)
        first, second, third = (x * gate for x, gate in zip(every, gates.unbind(-1), strict=True))
        return MixResult(first + second + third, None, carried, {})

    def _with_closed(self, call: Call, carried: Tree) -> Tree:
        """What is kept, with the means of the blocks that this call has closed."""
        source, known = call.memory.source, leaf(carried, REAL)
        whole = (call.offset + call.query.shape[2]) // self.size
        if whole == known.shape[1]:  # most steps of decoding close no block, and need not copy
            return carried
        some = slice(known.shape[1] * self.size, whole * self.size)
        key, value = source.key[:, :, some], source.value[:, :, some]
        real = None if source.mask is None else source.mask[:, some]
        mean_key, count = block_means(key, real, self.size)
        mean_value, _ = block_means(value, real, self.size)
        more = {MEAN_KEY: mean_key, MEAN_VALUE: mean_value, REAL: count > 0}
        return call.join(leaves(carried, more), more)

    def _of_means(
        self, call: Call, more: Added, real: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B Hq L N"] | None:
        """What positions add to the energies of means, zero for a block without real keys."""
        if more is None:
            return None
        rows, blocks = real.shape
        some = more[..., : blocks * self.size].transpose(2, 3).expand(rows, -1, -1, -1)
        keys = call.memory.source.key_mask()[:, : blocks * self.size]
        return block_means(some, keys, self.size)[0].transpose(2, 3)

    def _hidden(
        self, call: Call, weights: Float[Tensor, "B Hq L N"], closed: Allowed, more: Added
    ) -> Mixed:
        """What queries read of chosen blocks, with the keys of others hidden."""
        seen = self._chosen(call, weights, closed)[..., call.key_position // self.size]
        return self._masked(call, call.memory.source, seen & call.written_allowed, more)

    def _near(self, call: Call, more: Added) -> Mixed:
        """What queries read of the window."""
        source, length = call.memory.source, call.query.shape[2]
        some = slice(max(0, call.offset + 1 - self.near), call.offset + length)
        distance = call.position[:, None] - call.key_position[some]
        seen = ((distance >= 0) & (distance < self.near))[None, None]
        if source.mask is not None:
            seen = seen & source.mask[:, None, None, some]
        windows = replace(source, key=source.key[:, :, some], value=source.value[:, :, some])
        return self._masked(call, windows, seen, None if more is None else more[..., some])

    def _masked(self, call: Call, source: Source, seen: Allowed, more: Added) -> Mixed:
        """What queries read of the keys that they see."""
        if self.impl == "eager":
            weights = masked_softmax(biased(self._energy(call.query, source.key), more), seen)
            return weights @ expand_heads(source.value, self.dims.heads)
        # nobody is given the weights, so that a kernel need not write them
        mask = seen if more is None else more.masked_fill(~seen, float("-inf"))
        return fused_softmax(
            call.query, source.key, source.value, mask=mask, causal=False, scale=self.scale
        )

    def _gathered(
        self, call: Call, weights: Float[Tensor, "B Hq L N"], closed: Allowed, more: Added
    ) -> Mixed:
        """What queries read of chosen blocks, from copies of these keys alone."""
        source, heads = call.memory.source, self.dims.heads
        best, _ = self._best(call, weights, closed)
        place = best.unsqueeze(-1) * self.size + torch.arange(self.size, device=best.device)
        place = place.flatten(3)
        # blocks that are not closed lie behind the query
        seen = place <= call.position[:, None]
        place = place.clamp(max=source.num_keys - 1)
        if source.mask is not None:
            real = source.mask[:, None].expand(-1, place.shape[1], -1)
            seen = seen & real.gather(2, place.flatten(2)).view_as(place)
        key, value = _at(source.key, place), _at(source.value, place)
        asked = (self.scale * call.query).unflatten(1, (key.shape[1], -1))
        energy = torch.einsum("bhgle,bhlke->bhglk", asked, key).flatten(1, 2)
        shared = heads // place.shape[1]
        if more is not None:  # of every head, at the keys that it reads
            there = torch.repeat_interleave(place, shared, 1)
            energy = energy + more.expand(len(there), -1, -1, -1).gather(3, there)
        found = masked_softmax(energy, torch.repeat_interleave(seen, shared, 1))
        found = found.unflatten(1, (value.shape[1], -1))
        return torch.einsum("bhglk,bhlke->bhgle", found, value).flatten(1, 2)

    def _energy(
        self, query: Float[Tensor, "B Hq L E"], key: Float[Tensor, "B Hk S E"]
    ) -> Float[Tensor, "B Hq L S"]:
        return self.scale * query @ expand_heads(key, query.shape[1]).transpose(2, 3)

    def _chosen(
        self, call: Call, weights: Float[Tensor, "B Hq L N"], closed: Allowed
    ) -> Bool[Tensor, "B Hq L N"]:
        """Blocks that are read key by key."""
        best, valid = self._best(call, weights, closed)
        shape = (*valid.shape[:3], weights.shape[3])
        found = torch.zeros(shape, dtype=torch.bool, device=valid.device).scatter(-1, best, valid)
        return torch.repeat_interleave(found, self.dims.heads // self.dims.kv_heads, 1)

    def _best(
        self, call: Call, weights: Float[Tensor, "B Hq L N"], closed: Allowed
    ) -> tuple[Int[Tensor, "B Hk L K"], Bool[Tensor, "B Hk L K"]]:
        """Numbers of the blocks that come first, and whether they may be read."""
        shared = weights.unflatten(1, (self.dims.kv_heads, -1)).sum(2)
        numbers = torch.arange(weights.shape[3], device=weights.device)
        own = call.position[:, None] // self.size
        forced = (numbers == 0) | (numbers == own) | (numbers == own - 1)
        # weights are not negative: what is forced comes first, what is not closed last
        ranked = torch.where(closed, shared, -1.0).masked_fill(forced, float("inf"))
        best = ranked.topk(min(self.chosen, len(numbers)), -1).indices
        readable = (forced | closed) & (numbers <= own)
        return best, readable.expand(ranked.shape).gather(-1, best)

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Query by query and group by group, blocks as lists of their keys."""
        heads, length, _ = query.shape
        groups = source.key.shape[1]
        given = (call.get("extras") or {})[GATES]
        more = self.oracle_position_energy(query, source, read, **call)
        found: dict[tuple[int, int], Tensor] = {}
        for t in range(length):
            for g in range(groups):
                members = range(g * heads // groups, (g + 1) * heads // groups)
                values = [source.value[0, h * source.value.shape[1] // heads] for h in members]
                rows = [(query[h, t], more[h, t]) for h in members]
                branches = self._oracle_group(rows, source.key[0, g], values, t)
                for h, parts in zip(members, branches, strict=True):
                    gates = [1 / (1 + torch.exp(-number)) for number in given[t, h]]
                    found[h, t] = sum(
                        (gate * part for gate, part in zip(gates, parts, strict=True)),
                        torch.zeros_like(parts[0]),
                    )
        return torch.stack(
            [torch.stack([found[h, t] for t in range(length)]) for h in range(heads)]
        ), None

    def _oracle_group(
        self,
        queries: list[tuple[Float[Tensor, " E"], Float[Tensor, " S"]]],
        key: Float[Tensor, "S E"],
        values: list[Float[Tensor, "S Ev"]],
        t: int,
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """What the three branches of each head read, for heads that share keys.

        A head comes as its query, and what positions add to the energy of each key; values are its
        own.
        """
        size, own = self.size, t // self.size
        blocks = [range(n * size, (n + 1) * size) for n in range(own + 1)]
        closed = [n for n in range(own + 1) if blocks[n][-1] <= t]
        means = [torch.stack([key[s] for s in blocks[n]]).mean(0) for n in closed]
        nothing = torch.zeros_like(values[0][0])
        coarse, importance = [], dict.fromkeys(closed, 0.0)
        for (one, more), value in zip(queries, values, strict=True):
            mean_values = [torch.stack([value[s] for s in blocks[n]]).mean(0) for n in closed]
            added = [torch.stack([more[s] for s in blocks[n]]).mean(0) for n in closed]
            weights = self._oracle_weights(one, means, added)
            pairs = zip(weights, mean_values, strict=True)
            coarse.append(sum((weight * v for weight, v in pairs), nothing))
            for n, weight in zip(closed, weights, strict=True):
                importance[n] += float(weight.detach())
        kept = {n for n in (0, own - 1, own) if n >= 0}
        others = sorted((n for n in closed if n not in kept), key=lambda n: -importance[n])
        kept |= set(others[: self.chosen - len(kept)])
        found = []
        for (one, more), value, whole in zip(queries, values, coarse, strict=True):
            parts = []
            for seen in (
                [s for s in range(t + 1) if s // size in kept],
                [s for s in range(t + 1) if t - s < self.near],
            ):
                chosen = [key[s] for s in seen]
                weights = self._oracle_weights(one, chosen, [more[s] for s in seen])
                read = [weight * value[s] for weight, s in zip(weights, seen, strict=True)]
                parts.append(sum(read, nothing))
            found.append((whole, parts[0], parts[1]))
        return found

    def _oracle_weights(
        self, query: Float[Tensor, " E"], keys: list[Tensor], more: list[Tensor]
    ) -> list[Tensor]:
        if not keys:
            return []
        pairs = zip(keys, more, strict=True)
        energy = torch.stack([(query * key).sum() * self.scale + one for key, one in pairs])
        return list(oracle_softmax(energy, [True] * len(keys)))


def _at(x: Float[Tensor, "B H S E"], place: Int[Tensor, "B Hk L K"]) -> Float[Tensor, "B H L K E"]:
    """Vectors at places that differ from head to head."""
    index = torch.repeat_interleave(place, x.shape[1] // place.shape[1], 1)
    rows, heads = (torch.arange(count, device=x.device) for count in x.shape[:2])
    # copies whole vectors, which is faster than a gather of numbers
    return x[rows[:, None, None, None], heads[None, :, None, None], index]
