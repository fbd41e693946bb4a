"""KERPLE: energies fall by a kernel of the distance whose two numbers each head learns.

Chi, Fan, Ramadge & Rudnicky, 2022, "KERPLE: kernelized relative positional embedding for length
extrapolation", https://arxiv.org/abs/2205.09921, section 4, equation 5.

Deviations: numbers are kept positive by a softplus, and the exponent of the power within (0, 2) by
a sigmoid, where the released code clamps them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.one_sequence import ONE_SEQUENCE
from variants.positions.relative_distances import diagonals, distances
from variants.precision import wide_format
from variants.softplus import inverse_softplus_of_each

LARGEST_EXPONENT = 2.0
"""Beyond it the power is no kernel of the family."""


@dataclass(frozen=True, kw_only=True)
class KerpleConfig(Config):
    """Options of KERPLE."""

    kernel: Annotated[Literal["log", "power"], Choices(("log", "power"))] = "log"
    """-a log(1 + b d), or -a d^b with b within (0, 2)."""


@register(
    "position",
    "kerple",
    title="KERPLE",
    config=KerpleConfig,
    citation=Citation(
        text="Chi et al., 2022",
        url="https://arxiv.org/abs/2205.09921",
        where="section 4, equation 5",
    ),
    cost=1.1,
    default_task=DefaultTask(task="offset"),
)
class Kerple(Position):
    """-a log(1 + b d) or -a d^b is added to the energy, d = |i - j|, a and b positive.

    Both are conditionally positive definite. Two numbers a head; time O(L S) per head.
    """

    unsupported = ONE_SEQUENCE
    changes_energy = True
    by_place = True

    def __init__(self, config: KerpleConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.kernel = config.kernel
        first, second = torch.rand(2, dims.heads).clamp_min(1e-3)
        # as in the released code: of the logarithm a starts uniform in (0, 2) and b in (0, 1), of
        # the power a in (0, 1) and the exponent b in (0, 2)
        if config.kernel == "power":
            height, rate = second, first.logit()
        else:
            height, rate = 2 * first, inverse_softplus_of_each(second)
        self.height = nn.Parameter(inverse_softplus_of_each(height))
        self.rate = nn.Parameter(rate)

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """The kernel of every distance that occurs, in float32 at least."""
        wide = wide_format(call.query.dtype)
        distance = distances(call).abs().to(wide)
        height = functional.softplus(self.height.to(wide))[:, None]
        rate = self.rate.to(wide)[:, None]
        if self.kernel == "power":
            fallen = height * distance ** (LARGEST_EXPONENT * rate.sigmoid())
        else:
            fallen = height * torch.log1p(functional.softplus(rate) * distance)
        return diagonals(-fallen.to(call.query.dtype), call)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One kernel per key."""
        a = torch.log(1 + torch.exp(self.height[one.head]))
        found = []
        for s in range(one.num_keys):
            distance = abs(one.position - s)
            if self.kernel == "power":
                b = 2 / (1 + torch.exp(-self.rate[one.head]))
                found.append(-a * distance**b if distance else 0 * a * b)
            else:
                b = torch.log(1 + torch.exp(self.rate[one.head]))
                found.append(-a * torch.log(1 + b * distance))
        return torch.stack(found)
