"""Gated slot attention: softmax attention over a few slots, whose keys and values forget by gates.

Zhang et al., 2024, "Gated slot attention for efficient linear-time sequence modeling",
https://arxiv.org/abs/2409.07146, section 3.

Deviations: there are 16 slots by default, 64 in the paper. Queries, keys and values are as the
slot's heads make them, without the paper's Swish. Products with keys are divided by sqrt(E), as in
the authors' function where nothing else is said; their layer does not divide. The norm of the
output is that of the heads `short_convolution[gate=none]`, which also convolve; with other heads
there is none. It is taken over each head. The authors' layer applies SiLU to what was read, and
takes the norm over all heads together; it has no gate of the output.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, QueryShape
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.inputs import SlotInput
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, State, Tree, leaf
from variants.mechanisms.chunked_state import CHUNK, Steps, full_products, run
from variants.mechanisms.decayed_products import decayed_sums
from variants.mechanisms.state_recurrence import (
    StateRecurrence,
    Table,
    Token,
    oracle_product,
    oracle_written,
    without_padding,
)
from variants.mechanisms.turned import Turned


@dataclass(frozen=True, kw_only=True)
class GsaConfig(Config):
    """Options of gated slot attention."""

    slots: Annotated[int, IntRange(3, 64, log=True)] = 16
    """m, keys and values that are kept."""
    temperature: Annotated[float, FloatRange(1.0, 64.0, log=True)] = 8.0
    """tau: gates are sigmoids to the power 1 / tau, so that slots begin by remembering."""

    def __post_init__(self) -> None:
        """Check both."""
        if self.slots < 1 or self.temperature <= 0:
            raise InvalidConfig(
                "gsa: slots must be at least 1 and temperature positive, "
                f"got {self.slots} and {self.temperature}."
            )


@register(
    "mechanism",
    "gsa",
    title="Gated slot attention (GSA)",
    config=GsaConfig,
    citation=Citation(
        text="Zhang et al., 2024", url="https://arxiv.org/abs/2409.07146", where="section 3"
    ),
    cost=3.8,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Zhang et al. report better recall than other recurrences with a small state, for language "
        "models of 1.3 and 2.7 billion parameters, and that a trained transformer of 7 billion "
        "parameters can be turned into it. Softmax attention keeps every pair of this task, where "
        "a few slots have to share them."
    ),
)
class Gsa(Turned, StateRecurrence):
    """o_t = softmax(q K_t' / sqrt(E)) V_t, K_t = diag(a) K_(t-1) + (1 - a) k', V_t likewise.

    a has a gate for each slot. Time O(L slots (E + Ev + chunk)) per head.
    """

    def __init__(self, config: GsaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.slots, self.temperature = config.slots, config.temperature
        self.key_inputs = {"gate": SlotInput(config.slots)}

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """Empty slots."""
        matrix = leaf(super().start(memory, like).carried, "matrix")
        keys, values = (
            matrix.new_zeros(*matrix.shape[:2], self.slots, width)
            for width in (self.dims.key_width, self.dims.value_width)
        )
        return State(carried={"slot_keys": keys, "slot_values": values})

    def steps(self, call: Call) -> Steps:
        """A slot takes up as much of a value as it lets go; queries come later."""
        source = call.memory.source
        log_gate = functional.logsigmoid(leaf(source.extras, "gate")) / self.temperature
        share = -torch.expm1(log_gate)
        return Steps(share, share, source.value, log_gate)

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Compare queries with the keys of slots, then read the values of slots."""
        keys, values = leaf(carried, "slot_keys"), leaf(carried, "slot_values")
        same = self.widened(call, keys.dtype)
        steps = without_padding(self.steps(same), call.memory.source)
        query = same.query * self.dims.key_width**-0.5
        found = []
        for at in range(0, query.shape[2], CHUNK):
            some = slice(at, at + CHUNK)
            few = steps.cut(some)._replace(query=query[:, :, some])
            with full_products(keys):
                energy, keys = _compared(few, same.memory.source.key[:, :, some], keys)
            found.append(energy)
        weights = torch.softmax(torch.cat(found, 2), -1)
        output, values = run(steps._replace(query=weights), values)
        carried = {"slot_keys": keys, "slot_values": values}
        return MixResult(output.to(call.query.dtype), None, carried, {})

    def oracle_start(self, value: Float[Tensor, "S Ev"]) -> Table:
        """The keys of slots stand before their values."""
        return value.new_zeros(self.slots, self.dims.key_width + value.shape[1])

    def oracle_step(self, matrix: Table, token: Token) -> Table:
        """Slot by slot."""
        gates = [(1 / (1 + torch.exp(-g))) ** (1 / self.temperature) for g in token.given["gate"]]
        kept = torch.stack([gate * row for gate, row in zip(gates, matrix, strict=True)])
        both = torch.cat((token.key, token.value))
        return oracle_written(kept, torch.stack([1 - gate for gate in gates]), both)

    def oracle_read(self, matrix: Table, token: Token) -> Float[Tensor, " Ev"]:
        """Softmax over slots."""
        width, exps = len(token.query), []
        for slot in matrix:
            energy = sum((token.query[e] * slot[e] for e in range(width)), 0 * slot[0])
            exps.append(torch.exp(energy / width**0.5))
        total = sum(exps, 0 * exps[0])
        return oracle_product(torch.stack([e / total for e in exps]), matrix[:, width:])


def _compared(
    steps: Steps, key: Float[Tensor, "B H n E"], slots: Float[Tensor, "B H M E"]
) -> tuple[Float[Tensor, "B H n M"], Float[Tensor, "B H M E"]]:
    """Products of a few queries with the keys of slots at their time; those keys in the end."""
    query, share, log_gate = steps.query, steps.key, steps.log_decay
    assert log_gate is not None, "each slot forgets"
    total = log_gate.cumsum(2)
    near = decayed_sums(query, key, share, total)
    energy = near + (query @ slots.transpose(2, 3)) * total.exp()
    last = total[:, :, -1:]
    new = (share * (last - total).exp()).transpose(2, 3) @ key
    return energy, last.exp().transpose(2, 3) * slots + new
