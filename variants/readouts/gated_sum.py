"""Gated sum: every value passes its own gate before it is added up.

Li, Tarlow, Brockschmidt & Zemel, 2016, "Gated graph sequence neural networks",
https://arxiv.org/abs/1511.05493, equation 7: the gate decides which nodes matter to the whole.

Deviations: the paper's sum has gates and no weights, this one has both. In the paper the gates also
read the input, and values and sum go through tanh. `gate=query` is another reading, one gate of the
query on the sum.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.readouts.weighted_values import weighted_values


@dataclass(frozen=True, kw_only=True)
class GatedSumConfig(Config):
    """Options of the gated sum."""

    gate: Annotated[Literal["value", "query"], Choices(("value", "query"))] = "value"
    """What opens the gate: each value its own, or the query one for the sum."""


@register(
    "readout",
    "gated_sum",
    config=GatedSumConfig,
    title="Weighted sum of gated values",
    citation=Citation(
        text="Li et al., 2016", url="https://arxiv.org/abs/1511.05493", where="equation 7"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Li et al. gate the nodes of a graph before they are added up, and report no measurement "
        "of the gates alone. Here attention weights choose already, so that gates have little left "
        "to choose."
    ),
)
class GatedSum(Readout):
    """sum_s a_s sigmoid(v_s W + b) v_s, or sigmoid(q W + b) sum_s a_s v_s, unit by unit.

    Gates of values are computed once per source; time O(L S E + S E^2) per head.
    """

    removes = frozenset({"stream"})

    starts = {"bias": 0.0}

    def __init__(self, config: GatedSumConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.heads = dims.heads
        self.by_value = config.gate == "value"
        width = dims.value_width if self.by_value else dims.query_width
        self.gate = nn.Parameter(xavier_per_head(dims.heads, width, dims.value_width))
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, dims.value_width))

    def prepare(self, source: Source) -> Tree:
        """Pass every value through its gate."""
        if not self.by_value:
            return {}
        value = expand_heads(source.value, self.heads)
        return {"value": value * torch.sigmoid(per_head_linear(value, self.gate) + self.bias)}

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """One matrix product, over gated values or before the gate."""
        if self.by_value:
            return weighted_values(weights, leaf(call.memory.parts, self.branch, "value"))
        opened = torch.sigmoid(per_head_linear(call.query, self.gate) + self.bias)
        return opened * weighted_values(weights, call.memory.source.value)

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """Key by key and unit by unit."""
        found = []
        for unit in range(one.value.shape[1]):
            total = weights.new_zeros(())
            for s in range(one.num_keys):
                asked = one.value[s] if self.by_value else one.query
                inside = self.bias[one.head, 0, unit]
                for e in range(asked.shape[0]):
                    inside = inside + asked[e] * self.gate[one.head, e, unit]
                total = total + weights[s] * one.value[s, unit] / (1 + torch.exp(-inside))
            found.append(total)
        return torch.stack(found)
