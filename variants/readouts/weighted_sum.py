"""Weighted sum: the values, each times its weight, added up.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, equation 5 (section 3.1).

Deviations: none.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.readouts.weighted_values import weighted_values


@register(
    "readout",
    "weighted_sum",
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="equation 5"
    ),
)
class WeightedSum(Readout):
    """sum_s a_s v_s; time O(L S E) per head."""

    gives = frozenset({"weighted_sum"})

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """One matrix product."""
        return weighted_values(weights, call.memory.source.value)

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """Key by key."""
        output = torch.zeros_like(one.value[0])
        for s in range(one.num_keys):
            output = output + weights[s] * one.value[s]
        return output
