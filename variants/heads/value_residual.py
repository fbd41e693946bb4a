"""Value residual: values are a weighted sum of those of the first layer and of a layer's own.

Zhou et al., 2024, "Value residual learning", https://arxiv.org/abs/2410.17897, section 3
(ResFormer): V'_n = lambda_1 V_1 + lambda_2 V_n in every layer n above the first one.

Deviations: learned shares start at one half each, unless the options say other numbers; with
`learned=false` they stay, which is the mean of both values. The first layer is the lowest one that
holds this attention, where a stack holds others, too.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims, Link
from bench.api.config import Choices, Config, FloatRange
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Query
from bench.api.source import Source, Tree
from variants.heads.linked import LinkedHeads
from variants.heads.projections import width_of_head


@dataclass(frozen=True, kw_only=True)
class ValueResidualConfig(Config):
    """Options of the value residual."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    first: Annotated[float, FloatRange(0.0, 5.0)] = 0.5
    """Share of the first layer's values, where it starts or for good."""
    own: Annotated[float, FloatRange(0.0, 5.0)] = 0.5
    """The same of the layer's own values."""
    learned: bool = True
    """Whether each layer learns both shares."""
    bias: bool = False
    """Whether the projections have biases."""


@register(
    "head",
    "value_residual",
    config=ValueResidualConfig,
    title="Value residual (ResFormer)",
    citation=Citation(
        text="Zhou et al., 2024", url="https://arxiv.org/abs/2410.17897", where="section 3"
    ),
    default_task=DefaultTask(
        task="recall", backbone="transformer_decoder[width=32,layers=4,short_convolution=3]"
    ),
    does_not_show=(
        "Zhou et al. report the loss of a Transformer with 16% fewer parameters and 20% less text, "
        "for language models of 82 to 468 million parameters. Here a network has four layers of "
        "width 32, and every batch is new."
    ),
)
class ValueResidualHeads(LinkedHeads):
    """Multi-head projections whose values are joined with those of the first layer.

    Values are joined as they arrive, so the cache is that of multi-head attention.
    Cost: two numbers a layer, and two products for each number of a value.
    """

    def __init__(
        self,
        config: ValueResidualConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        self.config = config
        self.shares: nn.Parameter | None = None
        width = width_of_head("value_residual", config.heads, query_width)
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=config.bias)

    def link(self, below: tuple[int, ...]) -> Link | None:
        """The first layer, unless it is this one, which has no shares."""
        if not below:
            return None
        if self.config.learned:
            begin = torch.tensor([self.config.first, self.config.own])
            self.shares = nn.Parameter(begin.clone())
            self.starts = {"shares": begin}
        return Link(below[0], "nothing")

    def own_above(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
        below: Source,
    ) -> tuple[Query, Source, Tree]:
        """Project, and join the values with those of the first layer."""
        query, source, past = self.own(x, mask, tokens, past)
        first, own = self._weights()
        return query, replace(source, value=first * below.value + own * source.value), past

    def oracle_above(
        self, x: Float[Tensor, "L D"], below: Source
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "H L E"], Float[Tensor, "H L E"]]:
        """One head and one state after the other."""
        query, key, value = self.oracle_own(x)
        first, own = self._weights()
        heads = [
            torch.stack([first * theirs + own * mine for theirs, mine in zip(*pair, strict=True)])
            for pair in zip(below.value[0], value, strict=True)
        ]
        return query, key, torch.stack(heads)

    def _weights(self) -> tuple[Tensor | float, Tensor | float]:
        """Shares of the first layer's values and of the layer's own."""
        if self.shares is None:
            return self.config.first, self.config.own
        return self.shares[0], self.shares[1]
