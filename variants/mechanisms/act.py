"""Adaptive number of hops: a query reads the memory until a learned halting unit stops it.

Graves, 2016, "Adaptive computation time for recurrent neural networks",
https://arxiv.org/abs/1603.08983, sections 2 and 2.1, over the layer-wise hops of Sukhbaatar et al.,
2015, https://arxiv.org/abs/1503.08895.

Deviations: the step of the recurrent network is one memory hop. Queries carry no flag that marks
their first hop, as inputs do in section 2. All hops are computed, so that queries which stop early
save no time; at most `hops` are made. The ponder cost is the term `ponder`; the loss `ponder` adds
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.position import Content
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Source, Tree
from variants.mechanisms.biased import Biased
from variants.mechanisms.memory_hop import check_hops, flops_of_hop, oracle_read, read_memory
from variants.per_head_linear import per_head_linear
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class ActConfig(Config):
    """Options of adaptive hops."""

    hops: Annotated[int, IntRange(1, 16)] = 4
    """Hops at most."""
    epsilon: Annotated[float, FloatRange(0.001, 0.1, log=True)] = 0.01
    """What may be missing to one when a query stops, so that it can stop after one hop."""

    def __post_init__(self) -> None:
        """Check the hops and the slack."""
        if self.hops < 1:
            raise InvalidConfig(f"act: hops must be at least 1, got {self.hops}.")
        if not 0 < self.epsilon < 1:
            raise InvalidConfig(f"act: epsilon must lie between 0 and 1, got {self.epsilon}.")


@register(
    "mechanism",
    "act",
    title="Adaptive number of hops (ACT)",
    config=ActConfig,
    citation=Citation(
        text="Graves, 2016", url="https://arxiv.org/abs/1603.08983", where="sections 2 and 2.1"
    ),
    cost=2.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Graves reports recurrent networks that take more steps on harder inputs of synthetic "
        "tasks (parity of 64 bits, chains of up to 10 logic gates, sums of numbers of up to 5 "
        "digits). Each query of this task needs one lookup, so there is nothing for further steps "
        "to do."
    ),
)
class Act(Biased):
    """u_n = H u_{n-1} + o_n, h_n = sigmoid(w . u_n + b), stop at N, the first with sum h >= 1 - e.

    p_n = h_n before N and the rest of one at N; the output is the mean under p of what the hops had
    added, and the weights the mean of theirs. The term `ponder` is N + p_N. Time O(K L S E) per
    head.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "simplex", "key_local", "ponder"})
    unread: ClassVar[Mapping[Content, str]] = {"queries": "act changes the query at every hop"}
    starts_outside = (
        "its dot product has no scale, as in the paper, and later hops add what was read to the "
        "query; the backbone `memn2n` starts its states within N(0, 0.1), not with variance 1"
    )
    editable = True

    def __init__(self, config: ActConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        check_hops("act", dims)
        self.hops = config.hops
        self.enough = 1 - config.epsilon
        heads, width = dims.heads, dims.query_width
        self.carry = nn.Parameter(torch.eye(width).repeat(heads, 1, 1))
        self.halt = nn.Parameter(torch.zeros(heads, width, 1))
        # as in the paper, so that learning begins with few hops
        self.halt_bias = nn.Parameter(torch.ones(heads, 1))
        self.starts = {"carry": torch.eye(width), "halt": 0.0, "halt_bias": 1.0}

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """Those of every hop."""
        return self.hops * flops_of_hop(batch, heads, queries, keys, dims)

    def rows_alone(self) -> bool:
        """No query depends on another one."""
        return True

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Make all hops and average them by when each query stops."""
        source, allowed = call.memory.source, call.allowed
        key, value = (expand_heads(x, self.dims.heads) for x in (source.key, source.value))
        more = self.position_energy(call)
        asked, added = call.query, torch.zeros_like(call.query)
        outputs, weights, halts = [], [], []
        for _ in range(self.hops):
            found, weight = read_memory(call, asked, key, value, allowed, more)
            asked = per_head_linear(asked, self.carry) + found
            added = per_head_linear(added, self.carry) + found
            halt = per_head_linear(asked, self.halt).squeeze(-1) + self.halt_bias
            outputs.append(added)
            weights.append(weight)
            halts.append(torch.sigmoid(at_least_single(halt)))
        shares, ponder = halting(torch.stack(halts), self.enough)
        shares = shares.to(added.dtype).unsqueeze(-1)
        output = _weighted_sum(shares, outputs)
        mean = _weighted_sum(shares, weights) if want_weights else None
        return MixResult(output, mean, carried, {"ponder": ponder.mean(1).to(added.dtype)})

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Hop until enough, one query at a time."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        outputs, rows, ponder = [], [], []
        for head, place in ((h, p) for h in range(query.shape[0]) for p in range(query.shape[1])):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            visible = place + 1 if self.dims.regime == "causal" else len(key)
            asked = kept = query[head, place]
            output, row = torch.zeros_like(value[0]), torch.zeros_like(key[:, 0])
            spent = query.new_zeros(())
            for hop in range(self.hops):
                found, weights = oracle_read(asked, key, value, more[head, place], visible)
                asked, kept = asked @ self.carry[head] + found, kept @ self.carry[head]
                halt = torch.sigmoid(asked @ self.halt[head, :, 0] + self.halt_bias[head, 0])
                stops = hop == self.hops - 1 or bool(spent + halt >= self.enough)
                share = 1 - spent if stops else halt
                output, row = output + share * (asked - kept), row + share * weights
                if stops:
                    ponder.append(hop + 1 + share)
                    break
                spent = spent + halt
            outputs.append(output)
            rows.append(row)
        shape = query.shape[:2]
        terms = call.get("terms")
        if terms is not None:
            terms["ponder"] = torch.stack(ponder).unflatten(0, shape).mean(0)
        return torch.stack(outputs).unflatten(0, shape), torch.stack(rows).unflatten(0, shape)


def _weighted_sum(
    shares: Float[Tensor, "K B H L 1"], parts: list[Float[Tensor, "B H L n"]]
) -> Float[Tensor, "B H L n"]:
    """What the hops gave, by their shares; never stacked, as weights of many keys are large."""
    total = shares[0] * parts[0]
    for share, part in zip(shares[1:], parts[1:], strict=True):
        total = total + share * part
    return total


def halting(
    halt: Float[Tensor, "K ..."], enough: float
) -> tuple[Float[Tensor, "K ..."], Float[Tensor, "..."]]:
    """Share of each hop, which sum to one, and the ponder cost N + p_N.

    >>> shares, ponder = halting(torch.tensor([0.25, 0.5, 0.75, 0.5]), 0.99)
    >>> shares.tolist(), ponder.item()
    ([0.25, 0.5, 0.25, 0.0], 3.25)
    """
    total = halt.cumsum(0)
    before = total - halt
    stops = total >= enough
    stops[-1] = True
    # a query is still on its way where no earlier hop stopped it
    running = (stops.cumsum(0) - stops.long()) == 0
    last = running & stops
    shares = torch.where(last, 1 - before, torch.where(running, halt, 0.0))
    ponder = running.sum(0) + torch.where(last, shares, 0.0).sum(0)
    return shares, ponder
