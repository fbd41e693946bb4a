"""Sum without normalization: the weighted sum times the number of keys.

An average does not distinguish one key from two equal ones, a sum does: Xu et al., 2019, "How
powerful are graph neural networks?", https://arxiv.org/abs/1810.00826, section 5.2 (sum, mean and
max).

Deviations: that section is about neighbors of a node without attention; under uniform weights this
is its sum. Another reading, scores that are never normalized, is `normalizer=none`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.readouts.weighted_values import weighted_values


@register(
    "readout",
    "unnormalized_sum",
    title="Weighted sum times the number of keys",
    citation=Citation(
        text="Xu et al., 2019", url="https://arxiv.org/abs/1810.00826", where="section 5.2"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class UnnormalizedSum(Readout):
    """n sum_s a_s v_s over the n keys that the query may see; time O(L S E) per head."""

    removes = frozenset({"stream"})

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """One matrix product, scaled."""
        output = weighted_values(weights, call.memory.source.value)
        count = weights.shape[-1] if allowed is None else allowed.sum(-1, keepdim=True)
        return output * count

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """Each weight, divided by the uniform weight."""
        fair = 1 / max(1, sum(allowed))
        output = torch.zeros_like(one.value[0])
        for s in range(one.num_keys):
            output = output + weights[s] / fair * one.value[s]
        return output
