"""Selective attention: each token may lower the energy of earlier tokens for all tokens after it.

Leviathan et al., 2025, "Selective attention improves transformer",
https://arxiv.org/abs/2410.02703, section 3.

Deviations: the first token of the sequence is the one that is never lowered, whatever it is. Keys
are not removed from the cache, and the loss that makes tokens lower more is not here. Energies are
those with what positions add to them, also where a token says by how much it lowers others.
"""

from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, OracleOptions, QueryShape, Read
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Memory, Source, State, Tree, leaf
from variants.mechanisms.biased import Biased, biased
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.one_sequence import CAUSAL_ONLY
from variants.precision import wide_format

LOWERED = "lowered"
"""Branch of the state: by how much each key is lowered for the next query."""


@register(
    "mechanism",
    "selective",
    title="Selective attention",
    citation=Citation(
        text="Leviathan et al., 2025", url="https://arxiv.org/abs/2410.02703", where="section 3"
    ),
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
)
class Selective(Biased):
    """softmax(e_ij - sum_{t < i} max(0, e0_tj)), e0 the energies of the first head.

    The sum leaves out the first token, j = 0, and what a token says of itself, j = t. Time
    O(L S E) per head; the state has a number a key.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "simplex", "weighted_sum"})
    unsupported = CAUSAL_ONLY
    editable = True

    def __init__(self, config: NoOptions, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.scale = dims.key_width**-0.5

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """No key yet, so none is lowered."""
        # in float32 at least, since it adds up over the whole sequence
        wide = wide_format(like.dtype)
        empty = torch.zeros(like.rows, 0, dtype=wide, device=like.device)
        return State(carried={LOWERED: empty})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Add up what queries say of keys, then read as usual."""
        heads, allowed = self.dims.heads, call.written_allowed
        key = expand_heads(call.memory.source.key, heads)
        energy = self.scale * call.query @ key.transpose(2, 3)
        energy = biased(energy, self.position_energy(call))
        before = leaf(carried, LOWERED)
        others = (call.key_position > 0) & (call.key_position != call.position[:, None])
        said = allowed[:, 0] & others
        if call.memory.source.mask is not None:  # padding says nothing of the keys before it
            said = said & call.memory.source.mask[:, -call.query.shape[2] :, None]
        says = torch.where(said, functional.relu(energy[:, 0]), 0.0)
        before = functional.pad(before, (0, key.shape[2] - before.shape[1]))[:, None]
        lowered = torch.cat((before, says.to(before.dtype)), 1).cumsum(1)
        seen = energy - lowered[:, None, :-1].to(energy.dtype)
        weights = masked_softmax(seen, allowed)
        if call.edit is not None:
            weights = call.edit(weights, call)
        output = weights @ expand_heads(call.memory.source.value, heads)
        # a copy, without the memory of the queries before
        return MixResult(output, weights, {LOWERED: lowered[:, -1].clone()}, {})

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Token by token; the first head's energies are kept as they come."""
        heads, length, _ = query.shape
        num_keys = source.num_keys
        group, value_group = (heads // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        lowered = [query.new_zeros(()) for _ in range(num_keys)]
        rows = []
        for t in range(length):
            seen = [s <= t for s in range(num_keys)]
            energies = [
                [
                    query[h, t] @ source.key[0, h // group, s] * self.scale + more[h, t, s]
                    for s in range(num_keys)
                ]
                for h in range(heads)
            ]
            rows.append(
                [
                    oracle_softmax(torch.stack([e[s] - lowered[s] for s in range(num_keys)]), seen)
                    for e in energies
                ]
            )
            for s in range(1, t):
                said = energies[0][s]
                lowered[s] = lowered[s] + (said if float(said.detach()) > 0 else 0 * said)
        weights = torch.stack([torch.stack([row[h] for row in rows]) for h in range(heads)])
        outputs = [
            sum(
                (weights[h, t, s] * source.value[0, h // value_group, s] for s in range(num_keys)),
                torch.zeros_like(source.value[0, 0, 0]),
            )
            for h in range(heads)
            for t in range(length)
        ]
        return torch.stack(outputs).unflatten(0, (heads, length)), weights
