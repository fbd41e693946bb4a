"""cosFormer: rectified features, and weights that fall with distance as a cosine does.

Qin et al., 2022, "cosFormer: rethinking softmax in attention", https://arxiv.org/abs/2202.08791,
section 3.2.

Deviations: the paper's M is at least the length of the sequence, and the authors' code takes the
length itself, with which every new token changes all earlier outputs. Here M is the option
`longest`, and places behind it count as the last one. 1e-6 is added to the sum of weights.
Padding takes places.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.feature_attention import FeatureAttention


@dataclass(frozen=True, kw_only=True)
class CosformerConfig(Config):
    """Options of cosFormer."""

    longest: Annotated[int, IntRange(16, 8192, log=True)] = 512
    """M, the distance at which the weight would be zero (tokens)."""

    def __post_init__(self) -> None:
        """Check the length."""
        if self.longest < 1:
            raise InvalidConfig(f"cosformer: longest must be positive, got {self.longest}.")


@register(
    "mechanism",
    "cosformer",
    title="cosFormer",
    config=CosformerConfig,
    citation=Citation(
        text="Qin et al., 2022",
        url="https://arxiv.org/abs/2202.08791",
        where="section 3.2",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Qin et al. report language models of WikiText-103 (103 million words) and the Long Range "
        "Arena (1,000 to 16,000 tokens) at linear cost, with a quality near that of softmax "
        "attention or above it. Sequences of this task have at most 128 symbols, and softmax "
        "attention keeps every pair of them. Costs are in the tables of speed."
    ),
)
class Cosformer(FeatureAttention):
    """Weights relu(q).relu(k) cos(pi (i - j) / 2M), over their sum.

    The cosine of a difference is a product of cosines plus one of sines, so that there are 2E
    features. Time O(L E Ev) per head.
    """

    counts_places = True
    gives = frozenset({"places"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it weights by the distance in one sequence, and cross attention has two",
        "pool": "it weights by the distance in one sequence, and the query of pooling has no place",
    }

    def __init__(self, config: CosformerConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, 2 * dims.key_width)
        self.longest = config.longest

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """relu(x) times cosine and sine of the place."""
        angle = place.clamp(max=self.longest).to(x.dtype) * (math.pi / (2 * self.longest))
        rectified = functional.relu(x)
        cosine, sine = angle.cos().unsqueeze(-1), angle.sin().unsqueeze(-1)
        return torch.cat((rectified * cosine, rectified * sine), -1)

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Unit by unit, first all cosines."""
        angle = math.pi / 2 * min(place, self.longest) / self.longest
        rectified = [unit if unit > 0 else 0 * unit for unit in x]
        cosines = [unit * math.cos(angle) for unit in rectified]
        return torch.stack(cosines + [unit * math.sin(angle) for unit in rectified])
