"""Learned positions: one trained vector per position, added to the input of the stack.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5
and table 3 (E), after Gehring et al., 2017, https://arxiv.org/abs/1705.03122, section 3.1.

Deviations: vectors start with variance 1/2, the mean square of a sinusoid, so that both kinds of
positions begin alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register


@dataclass(frozen=True, kw_only=True)
class LearnedConfig(Config):
    """Options of learned positions."""

    max_length: Annotated[int, IntRange(64, 4096, log=True)] = 512
    """Positions the table holds (tokens)."""

    def __post_init__(self) -> None:
        """Check the size of the table."""
        if self.max_length < 1:
            raise InvalidConfig(f"learned: max_length must be at least 1, got {self.max_length}.")


@register(
    "position",
    "learned",
    title="Learned positions",
    config=LearnedConfig,
    citation=Citation(
        text="Gehring et al., 2017", url="https://arxiv.org/abs/1705.03122", where="section 3.1"
    ),
    default_task=DefaultTask(task="offset"),
)
class LearnedPosition(Position):
    """A table of `max_length` vectors of the model's width; there is nothing beyond its end.

    A stack has one table, that of its first layer.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it acts on the input of self-attention layers, and cross attention has none",
        "pool": "it acts on the input of self-attention layers, and pooling has none",
    }

    def __init__(self, config: LearnedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.length = config.max_length
        drawn = torch.randn(config.max_length, dims.model_width) * 0.5**0.5
        self.table: nn.Parameter | None = nn.Parameter(drawn)

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add the vectors of the positions from `offset` on.

        Raises:
            Refused: A position lies beyond the table.
        """
        end = offset + x.shape[1]
        if end > self.length:
            raise Refused(
                f"learned: the table ends at max_length={self.length}, but the sequence "
                f"has {end} tokens; raise max_length."
            )
        assert self.table is not None, "the input of this layer has no positions"
        return x + self.table[offset:end]

    def give_up_input(self) -> None:
        """Free the table."""
        self.table = None

    def oracle_embed(self, x: Float[Tensor, " D"], place: int) -> Float[Tensor, " D"]:
        """`embed` for one position, unit by unit."""
        table = self.table
        assert table is not None, "the input of this layer has no positions"
        return torch.stack([x[unit] + table[place, unit] for unit in range(x.shape[0])])
