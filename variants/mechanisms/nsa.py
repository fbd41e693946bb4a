"""Native sparse attention: means of blocks, the blocks whose means weigh most, and a near window.

Yuan et al., 2025, "Native sparse attention: hardware-aligned and natively trainable sparse
attention", https://arxiv.org/abs/2502.11089, section 3. A gate for each branch comes from the state
that asks.

Deviations: blocks are compressed by their mean and do not overlap, where the paper has a small
network and half a block of overlap; one set of keys and values serves the three branches. Masks and
not gathers, so time stays quadratic. The own block and the one before it are always chosen, and the
first one.
"""

from dataclasses import dataclass
from typing import Annotated, Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.component import expand_heads
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed
from bench.api.source import Source, Tree, leaf
from bench.api.variant import Impl
from variants.block_means import block_means
from variants.mechanisms.turned import Turned
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY

GATES = "nsa_gates"
"""Input of each query: a number for each branch, of which the gate is the sigmoid."""


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
        "64 thousand tokens. Here blocks are masks, which take longer than none."
    ),
)
class Nsa(Turned):
    """g_1 softmax over means of closed blocks + g_2 over chosen blocks + g_3 over the window.

    Query heads that share keys choose the same blocks, by the sum of their weights of the means. A
    query that comes before the first block is closed reads nothing from means. Time O(L S E).
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"jumps"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: NsaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        if impl not in ("auto", "eager"):
            raise Refused(f"nsa has no impl={impl}; use auto or eager.")
        self.size, self.chosen, self.near = config.block, config.chosen, config.window
        self.scale = dims.key_width**-0.5
        self.query_inputs = {GATES: SlotInput(3)}

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Three softmaxes, and their gates."""
        source, heads = call.memory.source, self.dims.heads
        real, allowed = source.key_mask(), call.allowed
        assert allowed is not None, "causal calls have a mask"
        small_key, count = block_means(source.key, real, self.size)
        small_value, _ = block_means(source.value, real, self.size)
        numbers = torch.arange(small_key.shape[2], device=real.device)
        closed = (numbers + 1) * self.size <= call.position[:, None] + 1
        closed = closed & (count > 0)[:, None, None]
        coarse = masked_softmax(self._energy(call.query, small_key), closed)
        energy = self._energy(call.query, source.key)
        seen = self._chosen(call, coarse.detach(), closed)[..., call.key_position // self.size]
        fine = masked_softmax(energy, seen & allowed)
        distance = call.position[:, None] - call.key_position
        local = masked_softmax(energy, (distance < self.near) & allowed)
        value = expand_heads(source.value, heads)
        read = (coarse @ expand_heads(small_value, heads), fine @ value, local @ value)
        gates = torch.sigmoid(leaf(call.extras, GATES)).transpose(1, 2).unsqueeze(3)
        return MixResult((torch.stack(read, -1) * gates).sum(-1), None, carried, {})

    def _energy(
        self, query: Float[Tensor, "B Hq L E"], key: Float[Tensor, "B Hk S E"]
    ) -> Float[Tensor, "B Hq L S"]:
        return self.scale * query @ expand_heads(key, query.shape[1]).transpose(2, 3)

    def _chosen(
        self, call: Call, weights: Float[Tensor, "B Hq L N"], closed: Allowed
    ) -> Bool[Tensor, "B Hq L N"]:
        """Blocks that are read key by key."""
        shared = weights.unflatten(1, (self.dims.kv_heads, -1)).sum(2)
        numbers = torch.arange(weights.shape[3], device=weights.device)
        own = call.position[:, None] // self.size
        forced = (numbers == 0) | (numbers == own) | (numbers == own - 1)
        # weights are not negative: what is forced comes first, what is not closed last
        ranked = torch.where(closed, shared, -1.0).masked_fill(forced, float("inf"))
        best = ranked.topk(min(self.chosen, len(numbers)), -1).indices
        found = torch.zeros_like(ranked, dtype=torch.bool).scatter(-1, best, True)
        found = found & (forced | closed) & (numbers <= own)
        return torch.repeat_interleave(found, self.dims.heads // self.dims.kv_heads, 1)

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
        found: dict[tuple[int, int], Tensor] = {}
        for t in range(length):
            for g in range(groups):
                members = range(g * heads // groups, (g + 1) * heads // groups)
                rows = [query[h, t] for h in members]
                branches = self._oracle_group(rows, source.key[0, g], source.value[0, g], t)
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
        queries: list[Float[Tensor, " E"]],
        key: Float[Tensor, "S E"],
        value: Float[Tensor, "S Ev"],
        t: int,
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """What the three branches of each head read, for heads that share keys."""
        size, own = self.size, t // self.size
        blocks = [range(n * size, (n + 1) * size) for n in range(own + 1)]
        closed = [n for n in range(own + 1) if blocks[n][-1] <= t]
        means = [torch.stack([key[s] for s in blocks[n]]).mean(0) for n in closed]
        mean_values = [torch.stack([value[s] for s in blocks[n]]).mean(0) for n in closed]
        nothing = torch.zeros_like(value[0])
        coarse, importance = [], dict.fromkeys(closed, 0.0)
        for one in queries:
            weights = self._oracle_weights(one, means)
            pairs = zip(weights, mean_values, strict=True)
            coarse.append(sum((weight * v for weight, v in pairs), nothing))
            for n, weight in zip(closed, weights, strict=True):
                importance[n] += float(weight.detach())
        kept = {n for n in (0, own - 1, own) if n >= 0}
        others = sorted((n for n in closed if n not in kept), key=lambda n: -importance[n])
        kept |= set(others[: self.chosen - len(kept)])
        found = []
        for one, whole in zip(queries, coarse, strict=True):
            parts = []
            for seen in (
                [s for s in range(t + 1) if s // size in kept],
                [s for s in range(t + 1) if t - s < self.near],
            ):
                weights = self._oracle_weights(one, [key[s] for s in seen])
                read = [weight * value[s] for weight, s in zip(weights, seen, strict=True)]
                parts.append(sum(read, nothing))
            found.append((whole, parts[0], parts[1]))
        return found

    def _oracle_weights(self, query: Float[Tensor, " E"], keys: list[Tensor]) -> list[Tensor]:
        if not keys:
            return []
        energy = torch.stack([(query * key).sum() * self.scale for key in keys])
        return list(oracle_softmax(energy, [True] * len(keys)))
