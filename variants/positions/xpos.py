"""xPos: rotary positions whose products also shrink with distance, slow pairs less than fast ones.

Sun et al., 2022, "A length-extrapolatable transformer", https://arxiv.org/abs/2212.10554, section
2.2, equation 9 and algorithm 1.

Deviations: no blockwise causal attention at inference, which is a mask. Places count from zero; the
released code counts from the middle, which changes no product but keeps the factors small: here
float32 holds them for some 35,000 tokens, and float16 for some 4,500.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.positions.rotation import BASE, frequencies, rotate
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class XposConfig(Config):
    """Options of xPos."""

    gamma: Annotated[float, FloatRange(0.1, 4.0, log=True)] = 0.4
    """Added to the share of each pair; more shrinks fast pairs less."""
    scale_base: Annotated[int, IntRange(16, 4096, log=True)] = 512
    """Distance at which a pair has shrunk by its factor (tokens)."""

    def __post_init__(self) -> None:
        """Check both numbers."""
        if self.gamma <= 0 or self.scale_base < 1:
            raise InvalidConfig(
                "xpos: gamma must be positive and scale_base at least 1, "
                f"got {self.gamma} and {self.scale_base}."
            )


@register(
    "position",
    "xpos",
    title="Rotary positions that shrink (xPos)",
    config=XposConfig,
    citation=Citation(
        text="Sun et al., 2022",
        url="https://arxiv.org/abs/2212.10554",
        where="section 2.2, equation 9",
    ),
    cost=1.2,
    default_task=DefaultTask(task="offset"),
)
class Xpos(Position):
    """Pair m at place p is turned as in `rope`, then multiplied by z^(p / scale_base).

    z = (2 m / E + gamma) / (1 + gamma); keys are divided where queries are multiplied. Has no
    parameters. Time O((L + S) E) per head; a key is turned once.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "places on one circle need one sequence, and cross attention has two",
        "self": "products shrink towards the past, and would grow towards the future",
        "pool": "places on one circle need one sequence, and the query of pooling is not in it",
    }
    turns = True

    def __init__(self, config: XposConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.gamma, self.scale_base = config.gamma, config.scale_base
        self.width = dims.query_width // 2 * 2
        if not self.width:
            raise InvalidConfig(f"xpos: a width of {dims.query_width} has no pair to turn.")

    def turn(
        self, x: Float[Tensor, "B H n E"], places: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """Turn queries, and let them shrink."""
        return self._turn(x, places, places)

    def turn_keys(
        self, x: Float[Tensor, "B H n E"], places: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """Turn keys, and let them grow by what queries at the same place shrink."""
        return self._turn(x, places, -places)

    def _turn(self, x: Tensor, places: Tensor, power: Tensor) -> Tensor:
        wide = at_least_single(x)
        front, rest = wide[..., : self.width], wide[..., self.width :]
        turned = rotate(front, places, frequencies(self.width, BASE, x.device), "interleaved")
        even = torch.arange(0, self.width, 2, dtype=torch.float64, device=x.device)
        share = (even / self.width + self.gamma) / (1 + self.gamma)
        scale = share ** (power[:, None] / self.scale_base)
        turned = turned * scale.repeat_interleave(2, -1).to(wide.dtype)
        return torch.cat((turned, rest), -1).to(x.dtype)

    def oracle_turn(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """Pair by pair, of a query."""
        return self._oracle_turn(x, place, place)

    def oracle_turn_key(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """Pair by pair, of a key."""
        return self._oracle_turn(x, place, -place)

    def _oracle_turn(self, x: Tensor, place: int, power: int) -> Tensor:
        found = list(x.unbind())
        for m in range(self.width // 2):
            angle = place / BASE ** (2 * m / self.width)
            share = (m / (self.width / 2) + self.gamma) / (1 + self.gamma)
            scale = share ** (power / self.scale_base)
            one, two = x[2 * m], x[2 * m + 1]
            found[2 * m] = scale * (one * math.cos(angle) - two * math.sin(angle))
            found[2 * m + 1] = scale * (one * math.sin(angle) + two * math.cos(angle))
        return torch.stack(found)
