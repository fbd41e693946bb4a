"""Forgetting attention: every token tells each head how much of all that came before to forget.

Lin, Nikishin, He & Courville, 2025, "Forgetting transformer: softmax attention with a forget gate",
https://arxiv.org/abs/2503.02130, section 3.1, equations 4 to 8.

Deviations: the block around attention stays the backbone's: no output gate, no norm of queries and
keys, no shift of keys and values (see `fox_pro`). Query heads that share a key head share its gate,
where the authors' layer has one for each query head. The gate's bias starts at 4, so that little
is forgotten at first; `start` sets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange
from bench.api.heads import expand_heads
from bench.api.inputs import SlotInput
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Source, Tree, leaf
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class FoxConfig(Config):
    """Options of forgetting attention."""

    start: Annotated[float, FloatRange(0.0, 8.0)] = 4.0
    """Bias of the gate at the start; 4 keeps 0.982 at every token."""


@register(
    "position",
    "fox",
    title="Forgetting attention (FoX)",
    config=FoxConfig,
    citation=Citation(
        text="Lin et al., 2025",
        url="https://arxiv.org/abs/2503.02130",
        where="section 3.1, equations 4 to 8",
    ),
    cost=1.1,
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
)
class Fox(Position):
    """Sum of log f_t, t from j + 1 to i, is added to the energy; f_t = sigmoid(w . x_t + b).

    w and b belong to a head; the slot projects x. Time O(S + L S) per head.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "forgetting needs one sequence, and cross attention has two",
        "self": "forgetting needs an order of time",
        "pool": "forgetting needs one sequence, and the query of pooling is not in it",
    }
    changes_energy = True

    def __init__(self, config: FoxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.key_inputs = {"forget": SlotInput(1)}
        self.heads = dims.heads
        self.bias = nn.Parameter(torch.full((dims.kv_heads,), config.start))
        self.starts = {"bias": config.start}

    def prepare(self, source: Source) -> Tree:
        """The logarithm of each gate, in float32 at least; padding forgets nothing."""
        raw = leaf(source.extras, "forget")
        wide = at_least_single(raw)
        log_gate = functional.logsigmoid(wide + self.bias.to(wide.dtype)[:, None, None])
        if source.mask is not None:
            log_gate = log_gate.masked_fill(~source.mask[:, None, :, None], 0.0)
        return {"log_gate": log_gate}

    def energy(self, call: Call) -> Float[Tensor, "B Hq L S"]:
        """Two running sums, one at the query and one at the key."""
        total = leaf(call.memory.parts, self.branch, "log_gate").cumsum(2)
        total = expand_heads(total, call.query.shape[1])
        here = total[:, :, call.offset : call.offset + call.query.shape[2]]
        return (here - total.transpose(-1, -2)).to(call.query.dtype)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """Walk from the query back; later keys are not seen anyway."""
        found = [one.query.new_zeros(())] * one.num_keys
        raw = one.key_extras["forget"]
        group = one.head * self.bias.shape[0] // self.heads
        total = one.query.new_zeros(())
        for s in reversed(range(one.position + 1)):
            found[s] = total
            gate = 1 / (1 + torch.exp(-raw[s, 0] - self.bias[group]))
            total = total + torch.log(gate)
        return torch.stack(found)
