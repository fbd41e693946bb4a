"""Scalable softmax: energies grow with the logarithm of the number of keys, so that none fades.

Nakanishi, 2025, "Scalable-softmax is superior for attention", https://arxiv.org/abs/2501.19399,
section 2.

Deviations: n is the number of keys that a query may see. s starts at 0.43, the value of the
paper's first figure.
"""

from dataclasses import dataclass
from math import log
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.normalizers.visible_keys import log_visible_keys


@dataclass(frozen=True, kw_only=True)
class SsmaxConfig(Config):
    """Options of scalable softmax."""

    scale: Annotated[float, FloatRange(0.1, 2.0, log=True)] = 0.43
    """s before training, one number a head that is learned (dimensionless)."""


@register(
    "normalizer",
    "ssmax",
    title="Scalable softmax",
    config=SsmaxConfig,
    citation=Citation(
        text="Nakanishi, 2025", url="https://arxiv.org/abs/2501.19399", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Nakanishi reports language models whose loss falls sooner, and which find key information "
        "in texts far longer than those of training. Sequences of this task have at most 128 "
        "symbols. Here the baseline recalls nearly every pair, which leaves no room above it."
    ),
)
class SsmaxNormalizer(Normalizer):
    """exp(s log(n) e) over its sum, n the number of allowed keys; time O(L S) per head."""

    visible_alone = True

    # not `softmax`: fused code would leave the factor out
    gives = frozenset({"simplex"})

    def __init__(self, config: SsmaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.scale = nn.Parameter(torch.full((dims.heads, 1, 1), config.scale))
        self.starts = {"scale": config.scale}

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Scale each row by its number of keys."""
        factor = self.scale.to(energy.dtype) * log_visible_keys(energy, allowed)
        return Normalized(masked_softmax(factor * energy, allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Count the keys of one row."""
        factor = self.scale[one.head, 0, 0] * log(max(1, sum(allowed)))
        return oracle_softmax(torch.stack([factor * e for e in energy]), allowed)
