"""Multi-token attention: a weight depends on the energies of nearby queries and nearby keys.

Golovneva et al., 2025, "Multi-token attention", https://arxiv.org/abs/2504.00927, section on
key-query convolution.

Deviations: one convolution, before the softmax; the paper may add one after it, mixes heads (as
`talking_heads` does) and normalizes and gates each head. Energies of keys that come after their own
query count as zero within the convolution, which is the paper's simpler form. Positions that add to
energies do so before the convolution, to those of the queries before this one, too.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf
from variants.mechanisms.biased import Biased, biased
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY

QUERIES = "queries"
"""Branch of the state: the last queries, whose energies the next ones need."""
BESIDE_QUERIES: frozenset[Capability] = frozenset({"relations", "token_extras"})
"""Needs of what comes with every query."""


@dataclass(frozen=True, kw_only=True)
class MultiTokenConfig(Config):
    """Options of the convolution."""

    queries: Annotated[int, IntRange(2, 16)] = 6
    """Queries whose energies meet, the current one and those before it, c_q (tokens)."""
    keys: Annotated[int, IntRange(3, 31)] = 11
    """Keys whose energies meet, around the one that is weighed, c_k (keys)."""

    def __post_init__(self) -> None:
        """Check both."""
        if min(self.queries, self.keys) < 1:
            raise InvalidConfig(
                "multi_token: queries and keys must be at least 1, "
                f"got {self.queries} and {self.keys}."
            )


@register(
    "mechanism",
    "multi_token",
    title="Multi-token attention",
    config=MultiTokenConfig,
    citation=Citation(
        text="Golovneva et al., 2025",
        url="https://arxiv.org/abs/2504.00927",
        where="key-query convolution",
    ),
    cost=2.4,
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
)
class MultiToken(Biased):
    """softmax(sum_ab w_ab e_{i-a, j+b}) over keys j up to query i, w learned by head.

    a runs from 0 to c_q - 1 and b over c_k keys around j; an energy e_ij with j > i counts as zero.
    The kernel starts with a one at a = b = 0, which is multi-head attention. Time
    O(L S (E + c_q c_k)) per head; the state has c_q - 1 queries.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "simplex", "weighted_sum"})
    unsupported = CAUSAL_ONLY
    editable = True

    def __init__(self, config: MultiTokenConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.scale = dims.key_width**-0.5
        self.queries, self.keys = config.queries, config.keys
        self.left = (config.keys - 1) // 2
        alone = torch.zeros(config.queries, config.keys)
        alone[-1, self.left] = 1.0
        self.kernel = nn.Parameter(alone.repeat(dims.heads, 1, 1))
        self.starts = {"kernel": alone}

    def refuse(self, position: Position) -> None:
        """Refuse a position that needs more of earlier queries than what is kept of them.

        Raises:
            Refused: It does, or it has no place in such a mechanism.
        """
        if position.query_inputs or position.needs & BESIDE_QUERIES:
            raise Refused(
                f"{type(position).__name__} wants more of a query than its vector, and "
                "multi_token keeps vectors alone of the queries before; use positions that go "
                "by places, keys or queries, such as alibi or cope."
            )
        super().refuse(position)

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """Queries before the first one are zero, and so are their energies."""
        shape = (like.rows, like.heads, self.queries - 1, like.width)
        return State(carried={QUERIES: torch.zeros(shape, dtype=like.dtype, device=like.device)})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Energies of these queries and of those before, a convolution, softmax, values."""
        heads, source = self.dims.heads, call.memory.source
        query = torch.cat((leaf(carried, QUERIES), call.query), 2)
        energy = self.scale * query @ expand_heads(source.key, heads).transpose(2, 3)
        energy = biased(energy, self._more(call, query))
        place = torch.arange(query.shape[2], device=query.device) + call.offset - self.queries + 1
        past = (call.key_position <= place[:, None]) & source.key_mask()[:, None, None, :]
        if source.mask is not None:
            past = past & self._asking(source.mask, query.shape[2])
        # zero before the convolution: it would carry energies of later keys to this query
        energy = torch.where(past, energy, 0.0)
        energy = functional.pad(energy, (self.left, self.keys - 1 - self.left))
        mixed = functional.conv2d(energy, self.kernel[:, None], groups=heads)
        weights = masked_softmax(mixed, call.allowed)
        if call.edit is not None:
            weights = call.edit(weights, call)
        output = weights @ expand_heads(source.value, heads)
        # a copy, without the memory of the queries before
        last = query[:, :, query.shape[2] - self.queries + 1 :].clone()
        return MixResult(output, weights, {QUERIES: last}, {})

    def _asking(self, mask: Bool[Tensor, "B S"], count: int) -> Bool[Tensor, "B 1 l 1"]:
        """Which of the last queries are no padding, which has no energies that others could use."""
        return functional.pad(mask, (self.queries - 1, 0))[:, None, -count:, None]

    def _more(
        self, call: Call, query: Float[Tensor, "B Hq l E"]
    ) -> Float[Tensor, "#B Hq l S"] | None:
        """What positions add for these queries and those before; zero before the first one."""
        earlier = min(call.offset, self.queries - 1)
        none = self.queries - 1 - earlier
        more = self.position_energy(
            replace(call, query=query[:, :, none:], offset=call.offset - earlier)
        )
        return None if more is None else functional.pad(more, (0, 0, none, 0))

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Every pair of a query and a key looks at the pairs around it."""
        heads, length, _ = query.shape
        num_keys = source.num_keys
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        outputs, weights = [], []
        for head in range(heads):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            energy = {
                (t, s): query[head, t] @ key[s] * self.scale + more[head, t, s]
                for t in range(length)
                for s in range(min(t + 1, num_keys))
            }
            for t in range(length):
                mixed = [self._oracle_pair(energy, head, t, s) for s in range(num_keys)]
                row = oracle_softmax(torch.stack(mixed), [s <= t for s in range(num_keys)])
                total = torch.zeros_like(value[0])
                for s in range(num_keys):
                    total = total + row[s] * value[s]
                outputs.append(total)
                weights.append(row)
        shape = (heads, length)
        return torch.stack(outputs).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)

    def _oracle_pair(
        self, energy: dict[tuple[int, int], Tensor], head: int, t: int, s: int
    ) -> Float[Tensor, ""]:
        total = self.kernel.new_zeros(())
        for back in range(self.queries):
            for tap in range(self.keys):
                near = energy.get((t - back, s + tap - self.left))
                if near is not None:
                    total = total + self.kernel[head, self.queries - 1 - back, tap] * near
        return total
