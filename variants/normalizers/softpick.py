"""Softpick: a rectified softmax, which gives weight to no key where all energies are below zero.

Zuhri et al., 2025, "Softpick: no attention sink, no massive activations with rectified softmax",
https://arxiv.org/abs/2504.20966.

Deviations: a row without any allowed key gives zeros. 1e-6 is added to the denominator, where the
authors' code has 1e-8.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call
from bench.api.capabilities import Capability
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.precision import at_least_single

EPS = 1e-6
"""Added to the denominator, as in the paper."""


@register(
    "normalizer",
    "softpick",
    title="Rectified softmax (softpick)",
    citation=Citation(text="Zuhri et al., 2025", url="https://arxiv.org/abs/2504.20966"),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Zuhri et al. report language models of 340 million and 1.8 billion parameters without "
        "attention sinks and without very large activations, which are easier to quantize. Nothing "
        "is quantized here."
    ),
)
class SoftpickNormalizer(Normalizer):
    """max(0, exp(e) - 1) / (sum |exp(e) - 1| + eps) over the allowed keys; time O(L S) per head.

    A row sums to at most one. Keys of energies below zero weigh nothing, yet they count in the sum.
    """

    visible_alone = True

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "never_positive": "it reads keys of positive energy alone, and this score gives none",
    }

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Relative to the largest energy, or to zero where all are below it."""
        wide = at_least_single(energy)
        if allowed is not None:
            wide = torch.where(allowed, wide, 0.0)  # which adds nothing to the sum
        top = wide.detach().amax(-1, keepdim=True).clamp(min=0)
        raised = (wide - top).exp() - (-top).exp()
        total = raised.abs().sum(-1, keepdim=True) + EPS * (-top).exp()
        return Normalized((functional.relu(raised) / total).to(energy.dtype))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """The formula of the paper, key by key."""
        zero = torch.zeros_like(energy[0])
        raised = [
            torch.exp(e) - 1 if open_ else zero for e, open_ in zip(energy, allowed, strict=True)
        ]
        total = sum((torch.abs(r) for r in raised), zero + EPS)
        return torch.stack([r / total if float(r.detach()) > 0 else zero for r in raised])
