"""Sparsemax: the point of the simplex nearest to the energies, which is zero at far keys.

Martins & Astudillo, 2016, "From softmax to sparsemax", https://arxiv.org/abs/1602.02068, section 2,
algorithm 1; computed by the authors' group's library `entmax`.

Deviations: the temperature is not in the paper.
"""

from dataclasses import dataclass
from typing import ClassVar

import entmax
from torch import Tensor

from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy, Weights
from variants.normalizers.fixed_alpha import FixedAlpha, FixedAlphaConfig


@dataclass(frozen=True, kw_only=True)
class SparsemaxConfig(FixedAlphaConfig):
    """Options of sparsemax."""

    named: ClassVar[str] = "sparsemax"


@register(
    "normalizer",
    "sparsemax",
    config=SparsemaxConfig,
    title="Euclidean projection onto the simplex, zero at far keys",
    citation=Citation(
        text="Martins & Astudillo, 2016",
        url="https://arxiv.org/abs/1602.02068",
        where="section 2, algorithm 1",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Martins and Astudillo report an accuracy near that of softmax, with attention to fewer "
        "words, on the 550,000 pairs of SNLI. Here the baseline finds nearly every value, which "
        "leaves no room above it. It is significantly better on `babi` of `families`."
    ),
    cost=1.3,
)
class SparsemaxNormalizer(FixedAlpha):
    """max(e - tau, 0) with tau such that a row sums to one; time O(L S log S) per head."""

    alpha = 2.0
    starts_outside = "keys whose energy is 1 below the best have no weight, by definition"

    def solve(self, energy: Energy) -> Weights:
        """Project each row."""
        return entmax.sparsemax(energy)

    def oracle_threshold(self, best: list[Tensor], zero: Tensor) -> Tensor:
        """Take keys in from the best one down while the threshold stays below them."""
        total = threshold = zero
        for count, e in enumerate(best, 1):
            if float((total + e - count * e).detach()) >= 1:
                break
            total = total + e
            threshold = (total - 1) / count
        return threshold
