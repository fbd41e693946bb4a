"""Log-linear attention: the past is kept as a few matrices, each of twice as many tokens.

Guo et al., 2025, "Log-linear attention", https://arxiv.org/abs/2506.04761, section 3: Fenwick
trees, and log-linear Mamba-2.

Deviations: levels from the option `levels` on share one matrix, so that memory is bounded. The
weight of each level is a softplus of the token and of a bias that starts it at one. The short
convolution, the norm and the gate are those of the heads `short_convolution`; with other heads
there are none. There is no skip connection around the matrices. Padding takes places, by which
levels go, but does not decay.
"""

from dataclasses import dataclass
from typing import Annotated, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf
from variants.mechanisms.chunked_state import Steps, full_products
from variants.mechanisms.state_recurrence import StateRecurrence, without_padding
from variants.mechanisms.step_decay import (
    decaying_steps,
    drawn_biases,
    drawn_rates,
    oracle_decay,
    oracle_softplus,
)
from variants.mechanisms.turned import Turned
from variants.softplus import inverse_softplus

CHUNK = 64
"""Tokens answered at once; bounds memory, changes no result."""


@dataclass(frozen=True, kw_only=True)
class LogLinearConfig(Config):
    """Options of log-linear attention."""

    levels: Annotated[int, IntRange(4, 24)] = 12
    """Levels of the tree; the last one has all that is older than 2^(levels - 2) tokens."""

    def __post_init__(self) -> None:
        """Check the levels: one of the token itself and one of its past."""
        if self.levels < 2:
            raise InvalidConfig(f"log_linear: levels must be at least 2, got {self.levels}.")


@register(
    "mechanism",
    "log_linear",
    title="Log-linear attention (Mamba-2)",
    config=LogLinearConfig,
    citation=Citation(
        text="Guo et al., 2025", url="https://arxiv.org/abs/2506.04761", where="section 3"
    ),
    cost=2.2,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Guo et al. report that it does well beside the same recurrence with one matrix, Mamba-2, "
        "for language models that read 16,384 tokens. Softmax attention, which keeps every pair of "
        "this task, is not what it is to beat. The comparison that the paper makes is with "
        "`mamba2_ssd`."
    ),
)
class LogLinear(Turned, StateRecurrence):
    """o_t = sum over levels of l_t q S_t, where each S_t is that of `mamba2_ssd` over some tokens.

    A token s has the level of the highest bit in which s and t differ, counted from one; the token
    itself has level 0. Time O(L levels E Ev) per head, and a matrix of state for each level.
    """

    counts_places = True

    def __init__(self, config: LogLinearConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.levels = config.levels
        self.key_inputs = {"step": SlotInput(1)}
        self.query_inputs = {"levels": SlotInput(config.levels)}
        self.rate = nn.Parameter(drawn_rates(dims.heads))
        self.bias = nn.Parameter(drawn_biases(dims.heads, 1))
        begin = inverse_softplus(1.0)
        self.level_bias = nn.Parameter(torch.full((dims.heads, config.levels), begin))
        self.starts = {"level_bias": begin}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty matrix for each level."""
        matrix = leaf(super().start(memory, like).carried, "matrix")
        every = matrix.unsqueeze(2).repeat(1, 1, self.levels, 1, 1)
        return State(carried={"matrix": every})

    def steps(self, call: Call) -> Steps:
        """A token writes as much as its step is long."""
        return decaying_steps(call, self.bias, self.rate)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read the matrices of all levels, chunk by chunk."""
        matrix = leaf(carried, "matrix")
        steps = without_padding(self.steps(self.widened(call, matrix.dtype)), call.memory.source)
        said = leaf(call.extras, "levels").to(matrix.dtype).transpose(1, 2)
        weights = functional.softplus(said + self.level_bias.to(matrix.dtype)[:, None])
        found = []
        for at in range(0, call.query.shape[2], CHUNK):
            some = slice(at, at + CHUNK)
            place = call.offset + at
            with full_products(matrix):
                output, matrix = self._chunk(steps.cut(some), weights[:, :, some], matrix, place)
            found.append(output)
        output = torch.cat(found, 2).to(call.query.dtype)
        return MixResult(output, None, {"matrix": matrix}, {})

    def _chunk(
        self,
        steps: Steps,
        weights: Float[Tensor, "B H n K"],
        matrix: Float[Tensor, "B H K E Ev"],
        place: int,
    ) -> tuple[Float[Tensor, "B H n Ev"], Float[Tensor, "B H K E Ev"]]:
        """Answer a few tokens from a place on."""
        query, key, value, log_decay, _ = steps
        assert log_decay is not None, "each step decays"
        size, device = query.shape[2], query.device
        total = log_decay.cumsum(2)
        token = torch.arange(place, place + size, device=device)
        level = torch.arange(self.levels, device=device)
        # the first token of each matrix before the chunk; all its tokens have one level
        first = (place >> level) << level
        first[-1] = 0
        near = self._weights(weights, token, token)
        gap = total - total.transpose(2, 3)
        decay = gap.masked_fill(token > token[:, None], float("-inf")).exp()
        inside = (query @ key.transpose(2, 3) * decay * near) @ value
        far = self._weights(weights, token, first) * total.exp()
        before = torch.einsum("bhte,bhkev,bhtk->bhtv", query, matrix, far)
        after = torch.arange(place + size, place + size + 1, device=device)
        moved = functional.one_hot(self._levels(after, first)[0], self.levels).to(query.dtype)
        entered = functional.one_hot(self._levels(after, token)[0], self.levels).to(query.dtype)
        last = total[:, :, -1:]
        kept = torch.einsum("bhkev,kl->bhlev", matrix, moved) * last.exp().unsqueeze(-1)
        left = key * (last - total).exp()
        new = torch.einsum("bhte,bhtv,tl->bhlev", left, value, entered)
        return inside + before, kept + new

    def _levels(self, token: Int[Tensor, " n"], earlier: Int[Tensor, " m"]) -> Int[Tensor, "n m"]:
        """Level of each earlier token: the highest bit that differs, counted from one."""
        bits = torch.arange(self.levels - 1, device=token.device)
        differ = token[:, None] ^ earlier
        return ((differ.unsqueeze(-1) >> bits) > 0).sum(-1)

    def _weights(
        self,
        weights: Float[Tensor, "B H n K"],
        token: Int[Tensor, " n"],
        earlier: Int[Tensor, " m"],
    ) -> Float[Tensor, "B H n m"]:
        """The weight that each token gives to the level of each earlier one."""
        level = self._levels(token, earlier)
        return weights.gather(3, level.expand(*weights.shape[:2], -1, -1))

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], None]:
        """Pair by pair."""
        heads, length, _ = query.shape
        group, value_group = heads // source.key.shape[1], heads // source.value.shape[1]
        extras = call.get("extras")
        assert extras is not None, "weights of levels come with the queries"
        found = []
        for head, t in ((h, t) for h in range(heads) for t in range(length)):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            said = leaf(source.extras, "step")[0, head // group, :, 0]
            total, kept = torch.zeros_like(value[0]), query.new_ones(())
            for s in range(t, -1, -1):
                step = oracle_softplus(said[s], self.bias[head, 0])
                level = min((s ^ t).bit_length(), self.levels - 1)
                weight = oracle_softplus(
                    extras["levels"][t, head, level], self.level_bias[head, level]
                )
                product = sum(query[head, t, e] * key[s, e] for e in range(key.shape[1]))
                total = total + weight * kept * product * step * value[s]
                kept = kept * oracle_decay(step, self.rate[head])
            found.append(total)
        return torch.stack(found).unflatten(0, (heads, length)), None
