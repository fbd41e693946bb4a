"""Heads with roles: most read values, the last ones only point at source positions.

After Allamanis, Peng & Sutton, 2016, "A convolutional attention network for extreme summarization
of source code", https://arxiv.org/abs/1602.03001, section 3.1, who give copying its own head;
the projections are those of Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.2.2.

Deviations: the paper's heads are convolutions (see `conv_copy`); here they are multi-head
attention. Pointing heads have values too; under `sharing=separate` nothing reads them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from variants.heads.projections import ProjectedHeads, oracle_linear, width_of_head


@dataclass(frozen=True, kw_only=True)
class RolesConfig(Config):
    """Options of heads with roles."""

    heads: Annotated[int, Choices((2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    pointing: Annotated[int, IntRange(1, 4)] = 1
    """How many of them, the last ones, point."""
    sharing: Literal["separate", "shared"] = "separate"
    """Whether the values of pointing heads stay out of the context or join it."""

    def __post_init__(self) -> None:
        """Check that both roles are taken."""
        if not 1 <= self.pointing < self.heads:
            raise InvalidConfig(
                f"roles: pointing must be at least 1 and below heads={self.heads}, "
                f"got {self.pointing}."
            )


@register(
    "head",
    "roles",
    config=RolesConfig,
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 3.1"
    ),
)
class RolesHeads(ProjectedHeads):
    """Linear maps to h heads of width D/h; the map back reads all heads or the reading ones."""

    def __init__(
        self,
        config: RolesConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("roles", config.heads, query_width)
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=False)
        self.output_width = query_width
        separate = config.sharing == "separate"
        self.reading = config.heads - config.pointing if separate else config.heads
        self.to_output = nn.Linear(self.reading * width, query_width, bias=False)
        for layer in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.xavier_uniform_(layer.weight)

    def merge(self, output: Float[Tensor, "B H L E"]) -> Float[Tensor, "B L D"]:
        """Concatenate the heads that read, and project."""
        return self.to_output(output[:, : self.reading].transpose(1, 2).flatten(2))

    def oracle_merge(self, output: Float[Tensor, "H E"]) -> Float[Tensor, " D"]:
        """One head that reads after the other."""
        heads = [output[head] for head in range(self.reading)]
        joined = torch.stack([number for head in heads for number in head])
        return torch.stack(oracle_linear(self.to_output, joined))
