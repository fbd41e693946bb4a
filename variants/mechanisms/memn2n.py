"""Memory hops: what was read is added to the query, which then reads the memory again.

Sukhbaatar et al., 2015, "End-to-end memory networks", https://arxiv.org/abs/1503.08895, sections
2.1 and 2.2. Embeddings, sentence and temporal encodings and the answer are the backbone `memn2n`.

Deviations: keys and values come from the slot's heads, so that under `tying=adjacent` the values of
later hops are linear maps of those of the first, not embeddings of their own, drawn at Xavier's
scale; H of `layer_wise` starts as the identity. The softmax is left out for a share of training,
not until the validation loss stalls. The output is what the hops added to the query.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.config import Choices, Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.position import Content
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, Tree, leaf
from variants.mechanisms.biased import Biased
from variants.mechanisms.memory_hop import check_hops, flops_of_hop, oracle_read, read_memory
from variants.per_head_linear import per_head_linear, xavier_per_head


@dataclass(frozen=True, kw_only=True)
class MemN2NConfig(Config):
    """Options of memory hops."""

    hops: Annotated[int, IntRange(1, 8)] = 3
    """Times the memory is read, K."""
    tying: Annotated[Literal["adjacent", "layer_wise"], Choices(("adjacent", "layer_wise"))] = (
        "adjacent"
    )
    """Whether a hop's keys are the last hop's values, or all hops share keys, values and H."""
    linear_start: Annotated[float, FloatRange(0.0, 0.5)] = 0.0
    """Share of training without the softmax, in which an output or a loss that reads weights finds
    none and is refused; evaluation always has it."""

    def __post_init__(self) -> None:
        """Check the hops and the share."""
        if self.hops < 1:
            raise InvalidConfig(f"memn2n: hops must be at least 1, got {self.hops}.")
        if not 0 <= self.linear_start <= 1:
            raise InvalidConfig(
                f"memn2n: linear_start is a share of training, got {self.linear_start}."
            )


@register(
    "mechanism",
    "memn2n",
    title="Memory hops (MemN2N)",
    config=MemN2NConfig,
    citation=Citation(
        text="Sukhbaatar et al., 2015",
        url="https://arxiv.org/abs/1503.08895",
        where="sections 2.1 and 2.2",
    ),
    cost=1.4,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Sukhbaatar et al. report that hops help where an answer needs several facts, one after "
        "the other, on average over the 20 tasks of bAbI. Recall needs one pair, so that further "
        "hops add what must be learned to be ignored."
    ),
)
class MemN2N(Biased):
    """u = q; K times: o = softmax(u . m) c, u = u + o (adjacent) or H u + o (layer-wise).

    The output is what was added to q (or to H^K q); a host that adds q back has the paper's u + o.
    Weights are those of the last hop; without the softmax there are none. Time O(K L S E) per head.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "key_local"})
    unread: ClassVar[Mapping[Content, str]] = {
        "queries": "memn2n changes the query at every hop",
        "keys": "memn2n has other keys in later hops",
    }
    starts_outside = (
        "its dot product has no scale, as in the paper, and later hops add what was read to the "
        "query; the backbone `memn2n` starts its states within N(0, 0.1), not with variance 1"
    )
    editable = True

    def __init__(self, config: MemN2NConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        check_hops("memn2n", dims)
        self.hops = config.hops
        self.linear_start = config.linear_start
        heads, width = dims.heads, dims.query_width
        self.carry: nn.Parameter | None = None
        self.later = nn.ParameterList()
        if config.tying == "layer_wise":
            self.carry = nn.Parameter(torch.eye(width).repeat(heads, 1, 1))
            self.starts = {"carry": torch.eye(width)}
        else:
            self.later.extend(
                nn.Parameter(xavier_per_head(heads, width, width)) for _ in range(config.hops - 1)
            )

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """Those of every hop."""
        return self.hops * flops_of_hop(batch, heads, queries, keys, dims)

    def prepare(self, source: Source) -> Memory:
        """Make the values of every hop, once per source."""
        value = expand_heads(source.value, self.dims.heads)
        later = {f"value{k + 2}": per_head_linear(value, m) for k, m in enumerate(self.later)}
        memory = super().prepare(source)
        return replace(memory, parts={**memory.parts, **later})

    def rows_alone(self) -> bool:
        """No query depends on another one."""
        return True

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read the memory as often as there are hops."""
        linear = call.progress < self.linear_start
        allowed, more = call.allowed, self.position_energy(call)
        asked, added = call.query, torch.zeros_like(call.query)
        weights = None
        for key, value in self._memories(call.memory):
            found, weights = read_memory(call, asked, key, value, allowed, more, linear=linear)
            if self.carry is not None:
                asked, added = (per_head_linear(x, self.carry) for x in (asked, added))
            asked, added = asked + found, added + found
        # products may be negative and sum to anything, so they are no weights to anybody else
        return MixResult(added, None if linear else weights, carried, {})

    def _memories(self, memory: Memory) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of each hop."""
        key = expand_heads(memory.source.key, self.dims.heads)
        value = expand_heads(memory.source.value, self.dims.heads)
        if self.carry is not None:
            return [(key, value)] * self.hops
        values = [value]
        values += [leaf(memory.parts, f"value{k + 2}") for k in range(len(self.later))]
        return list(zip([key, *values[:-1]], values, strict=True))

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Hop by hop, one query at a time."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        outputs, rows = [], []
        for head, place in ((h, p) for h in range(query.shape[0]) for p in range(query.shape[1])):
            key, first = source.key[0, head // group], source.value[0, head // value_group]
            visible = place + 1 if self.dims.regime == "causal" else len(key)
            value, kept = first, query[head, place]
            asked, weights = kept, torch.zeros_like(key[:, 0])
            for hop in range(self.hops):
                if hop and self.carry is None:
                    matrix = self.later[hop - 1][head]
                    key, value = value, torch.stack([row @ matrix for row in first])
                found, weights = oracle_read(asked, key, value, more[head, place], visible)
                if self.carry is not None:
                    asked, kept = asked @ self.carry[head], kept @ self.carry[head]
                asked = asked + found
            outputs.append(asked - kept)
            rows.append(weights)
        shape = query.shape[:2]
        return torch.stack(outputs).unflatten(0, shape), torch.stack(rows).unflatten(0, shape)
