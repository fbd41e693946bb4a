"""Deterministic parameter-free projection: features are products of rectified units.

Schlag et al., 2021, "Linear transformers are secretly fast weight programmers",
https://arxiv.org/abs/2102.11174, section 5.3.

Deviations: features only; the paper's delta rule is `deltanet`. 1e-6 is added to the sum of
weights.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.call import Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.feature_attention import FeatureAttention
from variants.mechanisms.turned import Turned


@dataclass(frozen=True, kw_only=True)
class DpfpConfig(Config):
    """Options of the projection."""

    shifts: Annotated[int, IntRange(1, 4)] = 3
    """nu: units are multiplied with those 1 to nu places before them."""

    def __post_init__(self) -> None:
        """Check the shifts."""
        if self.shifts < 1:
            raise InvalidConfig(f"dpfp: shifts must be at least 1, got {self.shifts}.")


@register(
    "mechanism",
    "dpfp",
    title="Linear attention (DPFP)",
    config=DpfpConfig,
    citation=Citation(
        text="Schlag et al., 2021", url="https://arxiv.org/abs/2102.11174", where="section 5.3"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Schlag et al. report that with keys of width 64 it stores up to 384 pairs, where linear "
        "attention begins to err at 60, and that softmax attention is ahead of both. From English "
        "to German (WMT 2014) they report 27.1 BLEU, 26.8 for linear attention, and 27.7 for "
        "softmax attention. So the paper claims no gain over the baseline, which keeps every pair "
        "of this task."
    ),
)
class Dpfp(Turned, FeatureAttention):
    """r = [relu(x), relu(-x)], f(x) = r times r turned by 1, ..., nu places: 2 nu E features.

    Vectors in different orthants share few features, so that more keys are nearly orthogonal.
    Time O((L + S) nu E Ev) per head.
    """

    def __init__(self, config: DpfpConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, 2 * config.shifts * dims.key_width)
        self.shifts = config.shifts

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """Products with each of the turned vectors."""
        both = torch.cat((functional.relu(x), functional.relu(-x)), -1)
        turned = [both * both.roll(shift + 1, -1) for shift in range(self.shifts)]
        return torch.cat(turned, -1)

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Product by product."""
        zero = x.new_zeros(())
        both = [unit if unit > 0 else zero for unit in x]
        both += [-unit if unit < 0 else zero for unit in x]
        found = []
        for shift in range(1, self.shifts + 1):
            found += [both[unit] * both[(unit - shift) % len(both)] for unit in range(len(both))]
        return torch.stack(found)
