"""SVFormer: all layers read the values of the first one, with queries and keys of their own.

Zhou et al., 2024, "Value residual learning", https://arxiv.org/abs/2410.17897, section 3
(SVFormer): the output of layer n is A_n V_1, with A_n the weights of that layer.

Deviations: none. The first layer is the lowest one that holds this attention, where a stack holds
others, too.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.call import Dims, Link
from bench.api.config import Choices, Config
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Query
from bench.api.source import Source, Tree
from variants.heads.linked import LinkedHeads
from variants.heads.projections import oracle_split, split_heads, width_of_head


@dataclass(frozen=True, kw_only=True)
class SvformerConfig(Config):
    """Options of values that all layers share."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    bias: bool = False
    """Whether the projections have biases."""


@register(
    "head",
    "svformer",
    config=SvformerConfig,
    title="SVFormer",
    citation=Citation(
        text="Zhou et al., 2024", url="https://arxiv.org/abs/2410.17897", where="section 3"
    ),
    default_task=DefaultTask(
        task="recall", backbone="transformer_decoder[width=32,layers=4,short_convolution=3]"
    ),
    does_not_show=(
        "Zhou et al. report nearly half the cache at a small loss, which depends on the length of "
        "the text, for language models trained on 20 billion tokens. Here a network has four "
        "layers of width 32 and reads at most 128 symbols."
    ),
)
class SvformerHeads(LinkedHeads):
    """Multi-head projections, of which layers above the first one have no map to values.

    Cost: above the first layer a cache of D numbers a token instead of 2 D, and one map less;
    attention itself costs as much.
    """

    def __init__(
        self,
        config: SvformerConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("svformer", config.heads, query_width)
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=config.bias)

    def link(self, below: tuple[int, ...]) -> Link | None:
        """The first layer, unless it is this one."""
        if not below:
            return None
        del self.to_value
        return Link(below[0], "values")

    def own_above(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
        below: Source,
    ) -> tuple[Query, Source, Tree]:
        """Queries and keys of these states beside the first layer's values."""
        key = split_heads(self.to_key(x), self.dims.kv_heads)
        return self.query(x), Source(key, below.value, mask, tokens), past

    def oracle_above(
        self, x: Float[Tensor, "L D"], below: Source
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "H L E"], Float[Tensor, "H L E"]]:
        """A query and a key of each state."""
        query = torch.stack([self.oracle_query(state) for state in x], 1)
        keys = [oracle_split(self.to_key, state, self.dims.kv_heads) for state in x]
        return query, torch.stack(keys, 1), below.value[0]
