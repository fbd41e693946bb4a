"""Say in one sentence what is projected; here queries and keys, into one narrow head.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import Heads
from bench.api.registry import DefaultTask, register
from bench.api.source import Source


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    width: Annotated[int, IntRange(2, 256, log=True)] = 16
    """Width of queries and keys."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"new_name: width must be at least 1, got {self.width}.")


@register(
    "head",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameHeads(Heads):
    """One head: q = x W_q and k = y W_k of a narrow width; values are the states."""

    def __init__(
        self,
        config: NewNameConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = config.width
        self.dims = Dims(1, 1, width, width, source_width, query_width, regime)
        self.output_width = source_width
        self.to_query = nn.Linear(query_width, width, bias=False)
        self.to_key = nn.Linear(source_width, width, bias=False)

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B 1 L E"]:
        """Project the queries."""
        return self.to_query(x).unsqueeze(1)

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Project the keys."""
        key, value = self.to_key(x).unsqueeze(1), x.unsqueeze(1)
        return Source(key=key, value=value, mask=mask, tokens=tokens)

    def merge(self, output: Float[Tensor, "B 1 L Ev"]) -> Float[Tensor, "B L Ev"]:
        """Drop the head axis."""
        return output.squeeze(1)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "1 E"]:
        """One query, number by number."""
        return torch.stack([line @ x for line in self.to_query.weight])[None]

    def oracle_source(
        self, x: Float[Tensor, " D"]
    ) -> tuple[Float[Tensor, "1 E"], Float[Tensor, "1 D"]]:
        """One state: its key number by number, and itself."""
        return torch.stack([line @ x for line in self.to_key.weight])[None], x[None]

    def oracle_merge(self, output: Float[Tensor, "1 Ev"]) -> Float[Tensor, " Ev"]:
        """The only head."""
        return output[0]
