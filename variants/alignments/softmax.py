"""Softmax: weights proportional to the exponential of the energy.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, equation 6 (section 3.1).

Deviations: a row without any allowed key gives zeros, not NaN.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.component import Aligned, Alignment, OneQuery
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants._math import masked_softmax, oracle_softmax


@register(
    "alignment",
    "softmax",
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="equation 6"
    ),
)
class SoftmaxAlignment(Alignment):
    """exp(e) / sum exp(e) over the allowed keys."""

    gives = frozenset({"softmax", "simplex", "weighted_sum"})

    def align(self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call) -> Aligned:
        """Normalize each row."""
        return Aligned(masked_softmax(energy, allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Normalize one row by loops."""
        return oracle_softmax(energy, allowed)
