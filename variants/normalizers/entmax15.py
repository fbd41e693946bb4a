"""1.5-entmax: half way between softmax and sparsemax, smooth and yet zero at far keys.

Peters, Niculae & Martins, 2019, "Sparse sequence-to-sequence models",
https://arxiv.org/abs/1905.05702, section 3 and algorithm 2; computed by the authors' library
`entmax`.

Deviations: the temperature is not in the paper.
"""

from dataclasses import dataclass
from typing import ClassVar

import entmax
import torch
from torch import Tensor

from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy, Weights
from variants.normalizers.fixed_alpha import FixedAlpha, FixedAlphaConfig


@dataclass(frozen=True, kw_only=True)
class Entmax15Config(FixedAlphaConfig):
    """Options of 1.5-entmax."""

    named: ClassVar[str] = "entmax15"


@register(
    "normalizer",
    "entmax15",
    config=Entmax15Config,
    title="Half way from softmax to sparsemax",
    citation=Citation(
        text="Peters et al., 2019",
        url="https://arxiv.org/abs/1905.05702",
        where="section 3, algorithm 2",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Peters et al. report better inflection of words and better translations (0.2 to 0.6 "
        "million pairs of sentences) than with softmax, where attention and output are sparse. "
        "Here the output is a softmax. Recall is solved: the baseline recalls nearly every pair, "
        "which leaves no room above it."
    ),
    cost=1.3,
)
class Entmax15Normalizer(FixedAlpha):
    """max(e / 2 - tau, 0)^2 with tau such that a row sums to one; time O(L S log S) per head."""

    alpha = 1.5

    def solve(self, energy: Energy) -> Weights:
        """Normalize each row."""
        return entmax.entmax15(energy)

    def oracle_threshold(self, best: list[Tensor], zero: Tensor) -> Tensor:
        """Solve sum (z - tau)^2 = 1 for growing sets of the best keys, until the next is below."""
        threshold = zero
        for count in range(1, len(best) + 1):
            linear = sum(best[:count], zero)
            square = sum((z * z for z in best[:count]), zero)
            # the smaller root of count tau^2 - 2 linear tau + square - 1
            inside = linear * linear - count * (square - 1)
            if float(inside.detach()) < 0:
                break
            threshold = (linear - torch.sqrt(inside)) / count
            if count < len(best) and float((best[count] - threshold).detach()) <= 0:
                break
        return threshold
