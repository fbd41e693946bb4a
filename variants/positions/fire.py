"""FIRE: a small network maps the distance, as a share of what the query has seen, to a bias.

Li et al., 2024, "Functional interpolation for relative positions improves long context
transformers", https://arxiv.org/abs/2310.04418, section 3.2, equations 4 to 6.

Deviations: every layer has a network of its own; sharing it is FIRE-S.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.one_sequence import ONE_SEQUENCE
from variants.precision import wide_format

EPS = 1e-6
"""Keeps the share of the first place finite, as in the paper's listing."""
RATE = 0.1
"""c at the start."""


@dataclass(frozen=True, kw_only=True)
class FireConfig(Config):
    """Options of FIRE."""

    width: Annotated[int, IntRange(4, 128, log=True)] = 32
    """Hidden units of the network."""
    threshold: Annotated[float, FloatRange(8.0, 2048.0, log=True)] = 512.0
    """Place before which distances are not yet shares; the start of a learned number (tokens)."""

    def __post_init__(self) -> None:
        """Check both sizes."""
        if self.width < 1 or self.threshold <= 0:
            raise InvalidConfig(
                "fire: width must be at least 1 and threshold positive, "
                f"got {self.width} and {self.threshold}."
            )


@register(
    "position",
    "fire",
    title="FIRE",
    config=FireConfig,
    citation=Citation(
        text="Li et al., 2024",
        url="https://arxiv.org/abs/2310.04418",
        where="section 3.2, equations 4 to 6",
    ),
    cost=1.15,
    default_task=DefaultTask(task="offset"),
)
class Fire(Position):
    """f_h(psi(i - j) / psi(max(T, i))) is added to the energy, psi(x) = log(1 + |c| x).

    f is a network with one hidden layer of W rectified units, shared by heads up to its last
    map; c and T are learned. Time O(L S (W + H)), memory O(L S W), for all heads together.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        **ONE_SEQUENCE,
        "self": "distances are shares of what came before the query",
    }
    changes_energy = True
    by_place = True
    multiplies_pairs = True

    def __init__(self, config: FireConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.threshold = config.threshold
        self.rate = nn.Parameter(torch.tensor(RATE))
        self.multiple = nn.Parameter(torch.tensor(1.0))
        self.inward = nn.Linear(1, config.width)
        self.outward = nn.Linear(config.width, dims.heads)
        self.starts = {"rate": RATE, "multiple": 1.0}

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """One pass of the network for every pair."""
        dtype = wide_format(call.query.dtype)
        rate = self.rate.to(dtype).abs()
        place = call.position.to(dtype)[:, None]
        distance = (place - call.key_position).abs()
        most = torch.maximum(place, (self.multiple * self.threshold).to(dtype).abs())
        share = torch.log1p(rate * distance) / (torch.log1p(rate * most) + EPS)
        hidden = functional.relu(self.inward(share.to(call.query.dtype).unsqueeze(-1)))
        found: Tensor = self.outward(hidden)
        return found.permute(2, 0, 1).unsqueeze(0)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """The network unit by unit, key by key."""
        found = []
        c, least = torch.abs(self.rate), torch.abs(self.multiple * self.threshold)
        for s in range(one.num_keys):
            most = least if least > one.position else torch.as_tensor(float(one.position))
            near = torch.log(c * abs(one.position - s) + 1)
            share = near / (torch.log(c * most + 1) + EPS)
            total = self.outward.bias[one.head]
            for unit in range(self.inward.weight.shape[0]):
                hidden = self.inward.weight[unit, 0] * share + self.inward.bias[unit]
                if hidden > 0:
                    total = total + self.outward.weight[one.head, unit] * hidden
            found.append(total)
        return torch.stack(found)
