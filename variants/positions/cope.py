"""CoPE: positions count only the keys that the query chooses to count, by gates from their product.

Golovneva, Wang, Weston & Sukhbaatar, 2024, "Contextual position encoding: learning to count what's
important", https://arxiv.org/abs/2405.18719, section 4, equations 3 to 5.

Deviations: gates see the scaled dot product of query and key, whatever the score is; the paper's
listing has the same product in both. Vectors are shared by the heads and start at zero, as in the
released code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class CopeConfig(Config):
    """Options of contextual positions."""

    places: Annotated[int, IntRange(4, 512, log=True)] = 64
    """Vectors; a key that is further away than the last one counts as the last (counts)."""

    def __post_init__(self) -> None:
        """Check that there are two vectors to stand between."""
        if self.places < 2:
            raise InvalidConfig(f"cope: places must be at least 2, got {self.places}.")


@register(
    "position",
    "cope",
    title="Contextual positions (CoPE)",
    config=CopeConfig,
    citation=Citation(
        text="Golovneva et al., 2024",
        url="https://arxiv.org/abs/2405.18719",
        where="section 4, equations 3 to 5",
    ),
    cost=1.4,
    default_task=DefaultTask(task="offset"),
)
class Cope(Position):
    """q_i . e[p_ij] is added; p_ij = sum over t from j to i of sigmoid(q_i . k_t / sqrt(E)).

    Between two whole places the product is interpolated. Time O(L S E + L P E) per head, memory
    O(L S) whether or not weights are wanted.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it counts keys up to the query, and cross attention has two sequences",
        "self": "it counts keys up to the query, which needs an order of time",
        "pool": "it counts keys up to the query, which is not in the sequence",
        "strictly_past": "it counts the key at the query's own place, which queries do not read",
    }
    changes_energy = True
    energy_reads = frozenset({"queries", "keys"})

    starts = {"table": 0.0}

    def __init__(self, config: CopeConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.scale = dims.key_width**-0.5
        self.table = nn.Parameter(torch.zeros(config.places, dims.query_width))

    def energy(self, call: Call) -> Float[Tensor, "B Hq L S"]:
        """Count from the query back, then read between the two nearest places."""
        place = self._count(call).clamp(max=self.table.shape[0] - 1)
        below = place.detach().floor()
        share = (place - below).to(call.query.dtype)
        by_place = call.query @ self.table.transpose(0, 1)
        low = by_place.gather(-1, below.long())
        high = by_place.gather(-1, place.detach().ceil().long())
        return low + share * (high - low)

    def _count(self, call: Call) -> Energy:
        """Gates summed from each key to the query, in float32 at least."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        product = (call.query * self.scale) @ key.transpose(-1, -2)
        wide = at_least_single(product)
        gate = wide.sigmoid()
        allowed = call.allowed
        if allowed is not None:
            gate = gate.masked_fill(~allowed, 0.0)
        return gate.flip(-1).cumsum(-1).flip(-1)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """Walk from the query back, and count."""
        found = [one.query.new_zeros(())] * one.num_keys
        count = one.query.new_zeros(())
        last = self.table.shape[0] - 1
        for s in reversed(range(one.position + 1)):
            product = one.query.new_zeros(())
            for e in range(one.query.shape[0]):
                product = product + one.query[e] * one.key[s, e]
            count = count + 1 / (1 + torch.exp(-product / one.key.shape[1] ** 0.5))
            whole = min(int(count), last)
            energy = torch.dot(one.query, self.table[whole])
            if whole < last:
                above = torch.dot(one.query, self.table[whole + 1])
                energy = energy + (count - whole) * (above - energy)
            found[s] = energy
        return torch.stack(found)
