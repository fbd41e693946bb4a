"""LSTM with a memory tape: each step attends to all states before it instead of to the last one.

Cheng, Dong & Lapata, 2016, "Long short-term memory-networks for machine reading",
https://arxiv.org/abs/1601.06733, section 3.1.

Deviations: several heads are several small networks side by side. The heads' projections give x_t
twice, as the query and as the value that enters the gates; keys are not used. A step whose token is
padding writes nothing to the tape, and what was recalled before it stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape, Read
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf, leaves
from bench.api.variant import Variant
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.precision import at_least_single, wide_format
from variants.scores.tanh_sum import tanh_sum

Join = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], dict[str, Tensor]]
REAL = "real"
"""Branch of the state: which tokens are real, where some are not."""


@dataclass(frozen=True, kw_only=True)
class LstmnConfig(Config):
    """Options of the memory network."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units of the intra-attention, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"lstmn: width must be at least 1, got {self.width}.")


@register(
    "mechanism",
    "lstmn",
    title="LSTM with a memory tape (intra-attention)",
    config=LstmnConfig,
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1601.06733", where="section 3.1"
    ),
    cost=7.5,
    default_task=DefaultTask(task="offset"),
)
class Lstmn(Variant):
    """a_i = v . tanh(W h_i + U x_t + R r_{t-1}); [r; m] = sum softmax(a)_i [h_i; c_i]; LSTM gates.

    r and m replace the last state and cell of the LSTM. Sequential in the steps; time O(L^2 (width
    + Ev)) per head; W h_i is computed once, when h_i is written.
    """

    remembers_keys = False
    gives = frozenset({"weights"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it attends to its own earlier states, and another sequence has none",
        "self": "it reads from left to right, and here keys lie on both sides",
        "pool": "it attends to its own earlier states, and a single query has none",
    }

    starts = {"bias": 0.0, "gates_bias": 0.0}

    def __init__(self, config: LstmnConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        heads, state, width = dims.heads, dims.value_width, config.width
        self.width = width
        self.of_tape = nn.Parameter(xavier_per_head(heads, state, width))
        self.of_query = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.of_recalled = nn.Parameter(xavier_per_head(heads, state, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)
        self.gates_of_recalled = nn.Parameter(xavier_per_head(heads, state, 4 * state))
        self.gates_of_value = nn.Parameter(xavier_per_head(heads, state, 4 * state))
        self.gates_bias = nn.Parameter(torch.zeros(heads, 1, 4 * state))

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """An empty tape, and which of its places are real where there is padding."""
        dtype = wide_format(like.dtype)
        shape = (like.rows, like.heads)

        def nothing(length: int, width: int) -> Tensor:
            return torch.zeros(*shape, length, width, dtype=dtype, device=like.device)

        state = self.dims.value_width
        return State(
            carried={
                "written": nothing(0, 2 * state),
                "tape": nothing(0, self.width),
                "recalled": nothing(1, state),
            }
        )

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Read the new tokens one by one."""
        known = leaf(carried, "written").shape[2]
        end = known + call.query.shape[2]
        source = call.memory.source
        value = expand_heads(source.value, self.dims.heads)
        carried, past = self._padding(call, carried, known)
        asked = per_head_linear(at_least_single(call.query), at_least_single(self.of_query))
        asked = 2 * (asked + self.bias)  # doubled, as `tanh_sum` expects it
        gates = per_head_linear(at_least_single(value), at_least_single(self.gates_of_value))
        gates = gates + self.gates_bias
        maps = self._maps()
        rows = []
        # one split has one backward; an index a step would write a whole gradient each
        steps = zip(_by_step(asked), _by_step(gates), strict=True)
        for place, given in enumerate(steps, known):
            weights, carried = self._step(given, maps, past, place, carried, call.join)
            rows.append(functional.pad(weights, (0, end - place)))
        written = leaf(carried, "written")[:, :, known:]
        output = written[..., : self.dims.value_width].to(call.query.dtype)
        weights = torch.cat(rows, 2).to(call.query.dtype)
        if past is not None:
            carried = {**carried, REAL: past}
        return MixResult(output, weights if want_weights else None, carried, {})

    def _padding(
        self, call: Call, carried: Tree, known: int
    ) -> tuple[Tree, Bool[Tensor, "B S"] | None]:
        """What is carried without its mask, and which tokens are real; None where all are."""
        new = call.memory.source
        if REAL not in carried and new.mask is None:
            return carried, None
        rest = {name: carried[name] for name in carried if name != REAL}
        if REAL in carried:
            before = leaf(carried, REAL)
        else:
            before = new.key_mask().new_ones(len(new.key), known)
        return rest, call.join({REAL: before}, {REAL: new.key_mask()})[REAL]

    def _maps(self) -> "_Maps":
        """Parameters of a step, in the format of the tape; those inside the tanh are doubled."""
        return _Maps(
            of_tape=2 * at_least_single(self.of_tape),
            of_recalled=2 * at_least_single(self.of_recalled),
            v=at_least_single(self.v),
            gates_of_recalled=at_least_single(self.gates_of_recalled),
        )

    def _step(
        self,
        given: tuple[Float[Tensor, "H B W"], Float[Tensor, "H B G"]],
        maps: "_Maps",
        mask: Bool[Tensor, "B S"] | None,
        place: int,
        carried: Tree,
        join: Join,
    ) -> tuple[Float[Tensor, "B H 1 n"], Tree]:
        """Attend to the tape, then write one more state and cell onto it."""
        written, tape, before = (leaf(carried, name) for name in ("written", "tape", "recalled"))
        asked = torch.baddbmm(given[0], _heads_first(before), maps.of_recalled)
        # in the order of the tape, or else the whole sum of both would be in that of the query
        energy = tanh_sum(_rows_first(asked).contiguous(), tape, maps.v)
        past = None if mask is None else mask[:, None, None, :place]
        weights = masked_softmax(energy, past)
        recalled, remembered = (weights @ written).chunk(2, -1)
        gates = torch.baddbmm(given[1], _heads_first(recalled), maps.gates_of_recalled)
        entering, forgetting, leaving, fresh = gates.chunk(4, -1)
        now = torch.sigmoid(forgetting) * _heads_first(remembered)
        now = now + torch.sigmoid(entering) * torch.tanh(fresh)
        if mask is not None:
            real = mask[:, place, None]
            now = torch.where(real, now, 0.0)
            # the score of the next token would see what padding has recalled
            recalled = torch.where(real[:, None, None], recalled, before)
        state = torch.sigmoid(leaving) * torch.tanh(now)
        both = torch.cat((state, now), -1)
        new = {"written": both, "tape": torch.bmm(state, maps.of_tape)}
        new = {name: _rows_first(one) for name, one in new.items()}
        joined = join(leaves(carried, new), new)
        return weights, {**joined, "recalled": recalled}

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Head by head, step by step, state by state."""
        heads = query.shape[0]
        group = heads // source.value.shape[1]
        outputs, weights = [], []
        for head in range(heads):
            output, rows = self._oracle_head(head, query[head], source.value[0, head // group])
            outputs.append(output)
            weights.append(rows)
        return torch.stack(outputs), torch.stack(weights)

    def _oracle_head(
        self, head: int, query: Float[Tensor, "L Eq"], value: Float[Tensor, "L Ev"]
    ) -> tuple[Float[Tensor, "L Ev"], Float[Tensor, "L L"]]:
        length, width = value.shape
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        rows = []
        recalled = torch.zeros_like(value[0])
        for t in range(length):
            inside = query[t] @ self.of_query[head] + recalled @ self.of_recalled[head]
            energies = [
                torch.tanh(h @ self.of_tape[head] + inside + self.bias[head, 0])
                @ self.v[head, :, 0]
                for h in hidden
            ]
            recalled = remembered = torch.zeros_like(value[0])
            row = torch.zeros_like(value[:, 0])
            if energies:
                shares = oracle_softmax(torch.stack(energies), [True] * t)
                for i, share in enumerate(shares):
                    recalled = recalled + share * hidden[i]
                    remembered = remembered + share * cells[i]
                row = torch.cat((shares, row[t:]))
            gates = recalled @ self.gates_of_recalled[head] + value[t] @ self.gates_of_value[head]
            gates = gates + self.gates_bias[head, 0]
            units = []
            for unit in range(width):
                enter, forget, fresh = gates[unit], gates[width + unit], gates[3 * width + unit]
                kept = remembered[unit] / (1 + torch.exp(-forget))
                units.append(kept + torch.tanh(fresh) / (1 + torch.exp(-enter)))
            cells.append(torch.stack(units))
            leaving = 1 / (1 + torch.exp(-gates[2 * width : 3 * width]))
            hidden.append(leaving * torch.tanh(cells[-1]))
            rows.append(row)
        return torch.stack(hidden), torch.stack(rows)


class _Maps(NamedTuple):
    """Matrices of each head that every step uses."""

    of_tape: Float[Tensor, "H n W"]
    of_recalled: Float[Tensor, "H n W"]
    v: Float[Tensor, "H W 1"]
    gates_of_recalled: Float[Tensor, "H n G"]


def _by_step(x: Float[Tensor, "B H L W"]) -> tuple[Float[Tensor, "H B W"], ...]:
    """What belongs to each step, heads first, as products with a matrix a head want it."""
    return x.transpose(0, 1).unbind(2)


def _heads_first(x: Float[Tensor, "B H 1 W"]) -> Float[Tensor, "H B W"]:
    return x.squeeze(2).transpose(0, 1)


def _rows_first(x: Float[Tensor, "H B W"]) -> Float[Tensor, "B H 1 W"]:
    return x.transpose(0, 1).unsqueeze(2)
