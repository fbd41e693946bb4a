"""Rotary positions: pairs of numbers in queries and keys are turned by angles that grow with place.

Su et al., 2021, "RoFormer: enhanced transformer with rotary position embedding",
https://arxiv.org/abs/2104.09864, section 3.2.2, equations 14 to 16 and 34. Longer sequences than
those of training: position interpolation, Chen et al., 2023, https://arxiv.org/abs/2306.15595,
section 2.3; NTK-aware and by parts (YaRN), Peng et al., 2023, https://arxiv.org/abs/2309.00071,
sections 3.1 to 3.4.

Deviations: a number without a partner is not turned. The ramp of YaRN goes by the number of turns,
as in its equations; the released code goes by the index of the pair. YaRN multiplies energies by
(0.1 ln s + 1)^2, and is refused by heads that keep a part of queries and keys from being turned,
such as `mla`, because that part is not seen here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, FloatRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.positions.rotation import Layout, frequencies, rotate

Scaling = Literal["none", "linear", "ntk", "yarn"]
SLOW, FAST = 1.0, 32.0
"""Turns within the length of training: pairs with fewer than the first are interpolated, with more
than the second they stay (section 3.2 of YaRN, for LLaMA)."""


@dataclass(frozen=True, kw_only=True)
class RopeConfig(Config):
    """Options of rotary positions."""

    layout: Annotated[Layout, Choices(("interleaved", "halves"))] = "interleaved"
    """Whether neighbors are a pair, as in the paper, or numbers half a width apart, as in
    GPT-NeoX and LLaMA of Hugging Face; weights of the one are a permutation of the other's."""
    base: Annotated[float, FloatRange(10.0, 1e6, log=True)] = 10000.0
    """Base of the geometric sequence of angles."""
    fraction: Annotated[float, FloatRange(0.25, 1.0)] = 1.0
    """Share of the width that is turned, from the front (partial rotary positions)."""
    # without search ranges: they are for a trained network whose sequences get longer
    scaling: Scaling = "none"
    """How more places fit into the angles of training."""
    factor: float = 4.0
    """How many times longer sequences get; unused without `scaling`."""
    original: int = 24
    """Length of training (tokens); `yarn` alone uses it."""

    def __post_init__(self) -> None:
        """Check what a formula could not take."""
        if self.base <= 1 or not 0 < self.fraction <= 1:
            raise InvalidConfig(
                "rope: base must be above 1 and fraction in (0, 1], "
                f"got {self.base} and {self.fraction}."
            )
        if self.factor < 1 or self.original < 1:
            raise InvalidConfig(
                "rope: factor and original must be at least 1, "
                f"got {self.factor} and {self.original}."
            )


@register(
    "position",
    "rope",
    title="Rotary positions (RoPE)",
    config=RopeConfig,
    citation=Citation(
        text="Su et al., 2021",
        url="https://arxiv.org/abs/2104.09864",
        where="section 3.2.2, equations 14 to 16",
    ),
    cost=1.2,
    default_task=DefaultTask(task="offset"),
)
class Rope(Position):
    """Pair m of a query or key at place p is turned by p base^(-2 m / E).

    A dot product then sees the distance of two places alone. Has no parameters. Time
    O((L + S) E) per head; a key is turned once.
    """

    needs = frozenset({"equal_width"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "places on one circle need one sequence, and cross attention has two",
        "pool": "places on one circle need one sequence, and the query of pooling is not in it",
    }
    turns = True

    def __init__(self, config: RopeConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.width = int(config.fraction * dims.query_width) // 2 * 2
        if not self.width:
            raise InvalidConfig(
                f"rope: fraction={config.fraction} of a width of {dims.query_width} has no pair "
                "to turn; use wider heads."
            )
        # YaRN divides energies by t, so queries and keys are multiplied by its root's inverse
        self.sharpened = config.scaling == "yarn"
        if self.sharpened and dims.turned_width:
            raise Refused(
                "rope: scaling=yarn multiplies whole queries and keys, and these heads hand it the "
                "turned part alone; use scaling=ntk or other heads."
            )
        self.sharper = 0.1 * math.log(config.factor) + 1

    def turn(
        self, x: Float[Tensor, "B H n E"], places: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """Turn the front of every vector."""
        front, rest = x[..., : self.width], x[..., self.width :]
        turned = rotate(front, places, self._frequency(x.device), self.config.layout)
        found = torch.cat((turned, rest), -1) if rest.shape[-1] else turned
        return found * self.sharper if self.sharpened else found

    def _frequency(self, device: torch.device) -> Float[Tensor, " P"]:
        """Angle of each pair at place one."""
        factor = self.config.factor
        plain = frequencies(self.width, self.config.base, device)
        if self.config.scaling == "linear":
            return plain / factor
        if self.config.scaling == "ntk":
            # the base grows so that the last pair is interpolated in full, and the first not at all
            last = max(1, self.width // 2 - 1)
            pair = torch.arange(self.width // 2, dtype=plain.dtype, device=device)
            return plain * factor ** (-pair / last)
        if self.config.scaling == "yarn":
            turns = self.config.original * plain / (2 * math.pi)
            kept = ((turns - SLOW) / (FAST - SLOW)).clamp(0, 1)
            return plain * (kept + (1 - kept) / factor)
        return plain

    def oracle_turn(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """Pair by pair."""
        found = list(x.unbind())
        for m in range(self.width // 2):
            angle = place * self._oracle_frequency(m)
            one, two = 2 * m, 2 * m + 1
            if self.config.layout == "halves":
                one, two = m, m + self.width // 2
            found[one] = x[one] * math.cos(angle) - x[two] * math.sin(angle)
            found[two] = x[one] * math.sin(angle) + x[two] * math.cos(angle)
        scale = 0.1 * math.log(self.config.factor) + 1 if self.config.scaling == "yarn" else 1
        return torch.stack([scale * number for number in found])

    def _oracle_frequency(self, m: int) -> float:
        base, factor = self.config.base, self.config.factor
        if self.config.scaling == "ntk" and self.width > 2:
            base = base * factor ** (self.width / (self.width - 2))
        plain = base ** (-2 * m / self.width)
        if self.config.scaling == "linear":
            return plain / factor
        if self.config.scaling == "yarn":
            turns = self.config.original / (2 * math.pi / plain)
            if turns < SLOW:
                return plain / factor
            if turns > FAST:
                return plain
            share = (turns - SLOW) / (FAST - SLOW)
            return (1 - share) * plain / factor + share * plain
        return plain
