"""Modern Hopfield network: a query is drawn to the stored patterns before it reads their values.

Ramsauer et al., 2021, "Hopfield networks is all you need", https://arxiv.org/abs/2008.02217,
section 2, equation 3, and section 3.

Deviations: the number of steps is fixed, and there is no test of convergence; patterns are not
normalized. Positions that add c_j to the energy of pattern j add it at every step, so that e^c_j is
how often the pattern counts. The energy x.x / 2 - log(sum_j e^(b x.k_j + c_j)) / b then still falls
with every step. It need not where c depends on the query, which steps move, and such positions are
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, MixResult, OracleOptions, Read
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.fused import read_softmax
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.position import Content
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Source, Tree
from variants.mechanisms.biased import Biased, biased
from variants.mechanisms.memory_hop import flops_of_hop
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax


@dataclass(frozen=True, kw_only=True)
class HopfieldConfig(Config):
    """Options of Hopfield retrieval."""

    steps: Annotated[int, IntRange(1, 8)] = 3
    """Softmaxes in a row; with one it is scaled dot-product attention."""
    beta: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """Inverse temperature, times 1 / sqrt(E); where it is large, a single pattern is retrieved."""

    def __post_init__(self) -> None:
        """Check the steps and the temperature."""
        if self.steps < 1:
            raise InvalidConfig(f"hopfield: steps must be at least 1, got {self.steps}.")
        if self.beta <= 0:
            raise InvalidConfig(f"hopfield: beta must be positive, got {self.beta}.")


@register(
    "mechanism",
    "hopfield",
    title="Modern Hopfield retrieval",
    config=HopfieldConfig,
    citation=Citation(
        text="Ramsauer et al., 2021",
        url="https://arxiv.org/abs/2008.02217",
        where="sections 2 and 3",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Ramsauer et al. show that one step of it is softmax attention, and report gains where few "
        "of several 100,000 instances decide a label. One lookup among at most 32 pairs, as in "
        "this task, needs no further step."
    ),
)
class Hopfield(Biased):
    """x = q; all steps but the last: x = softmax(b x K') K; the last one reads values.

    b = beta / sqrt(E). Time O(steps L S E) per head.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "simplex", "weighted_sum", "key_local"})
    unread: ClassVar[Mapping[Content, str]] = {
        "queries": "hopfield moves the query at every step, so that its energy need not fall"
    }
    turned_alike = "hopfield asks with a mean of keys from its second step on"
    starts_outside = "every step draws the query nearer to few patterns, which is what retrieval is"
    editable = True

    def __init__(self, config: HopfieldConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        self.num_steps = config.steps
        self.beta = config.beta * dims.key_width**-0.5

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """Those of every step."""
        return self.num_steps * flops_of_hop(batch, heads, queries, keys, dims)

    def rows_alone(self) -> bool:
        """Where positions add to energies; else fused code holds no number for each key."""
        return self.adds_to_energies

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Move the query among the keys, then read the values."""
        plain = not want_weights and call.edit is None
        if self.impl == "auto" and plain and not self.adds_to_energies:
            own, asked = call.memory.source, call.query
            for _ in range(self.num_steps - 1):
                asked = read_softmax(call, asked, own.key, own.key, self.beta)
            found = read_softmax(call, asked, own.key, own.value, self.beta)
            return MixResult(found, None, carried, {})
        source, allowed = call.memory.source, call.allowed
        key = expand_heads(source.key, self.dims.heads)
        value = expand_heads(source.value, self.dims.heads)
        asked, more = call.query, self.position_energy(call)
        for _ in range(self.num_steps - 1):
            energy = biased(self.beta * asked @ key.transpose(-1, -2), more)
            asked = masked_softmax(energy, allowed) @ key
        energy = biased(self.beta * asked @ key.transpose(-1, -2), more)
        weights = masked_softmax(energy, allowed)
        if call.edit is not None:
            weights = call.edit(weights, call)
        return MixResult(weights @ value, weights, carried, {})

    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Step by step, one query at a time."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        more = self.oracle_position_energy(query, source, read, **call)
        outputs, rows = [], []
        for head, place in ((h, p) for h in range(query.shape[0]) for p in range(query.shape[1])):
            key, value = source.key[0, head // group], source.value[0, head // value_group]
            seen = [s <= place or self.dims.regime != "causal" for s in range(len(key))]
            asked, weights = query[head, place], torch.zeros_like(key[:, 0])
            for step in range(self.num_steps):
                energy = [self.beta * sum(asked[e] * k[e] for e in range(len(k))) for k in key]
                weights = oracle_softmax(torch.stack(energy) + more[head, place], seen)
                if step < self.num_steps - 1:
                    zero = torch.zeros_like(asked)
                    asked = sum((weights[s] * key[s] for s in range(len(key))), zero)
            zero = torch.zeros_like(value[0])
            outputs.append(sum((weights[s] * value[s] for s in range(len(key))), zero))
            rows.append(weights)
        shape = query.shape[:2]
        return torch.stack(outputs).unflatten(0, shape), torch.stack(rows).unflatten(0, shape)
