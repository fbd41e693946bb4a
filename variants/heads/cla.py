"""Cross-layer attention: a layer reads the keys and values of a layer below and makes none.

Brandon et al., 2024, "Reducing transformer key-value cache size with cross-layer attention",
https://arxiv.org/abs/2405.12981, section 2: of `sharing` neighboring layers, the lowest one makes
keys and values, and all of them read these with queries of their own.

Deviations: layers are counted among those that hold this attention, where a stack holds others,
too. Keys are read as they stand in the layer below: turned by its positions.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Dims, Link
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Source
from variants.heads.linked import LinkedHeads
from variants.heads.projections import width_of_head


@dataclass(frozen=True, kw_only=True)
class ClaConfig(Config):
    """Options of cross-layer attention."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of query heads; divides the model width."""
    kv_heads: Annotated[int, Choices((0, 1))] = 0
    """Number of heads of keys and values, which divides the heads; 0 for as many as heads."""
    sharing: Annotated[int, Choices((2, 3, 4))] = 2
    """Layers that read the same keys and values, the one that makes them among them."""
    bias: bool = False
    """Whether the projections have biases."""

    def __post_init__(self) -> None:
        """Check how many layers share."""
        if self.sharing < 1:
            raise InvalidConfig(f"cla: sharing must be at least 1, got {self.sharing}.")


@register(
    "head",
    "cla",
    config=ClaConfig,
    title="Cross-layer attention (CLA)",
    citation=Citation(
        text="Brandon et al., 2024", url="https://arxiv.org/abs/2405.12981", where="section 2"
    ),
    default_task=DefaultTask(
        task="recall", backbone="transformer_decoder[width=32,layers=4,short_convolution=3]"
    ),
    does_not_show=(
        "Brandon et al. report half the cache of multi-query attention at nearly the same "
        "accuracy, for language models of 1 and 3 billion parameters. Here a network has four "
        "layers of width 32, and the score does not count the cache."
    ),
)
class ClaHeads(LinkedHeads):
    """Multi-head projections, of which layers that read another one have queries and output alone.

    Cost: the cache of one layer in `sharing`, and no maps to keys and values in the others;
    attention itself costs as much.
    """

    def __init__(
        self,
        config: ClaConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads, kv_heads = config.heads, config.kv_heads or config.heads
        width = width_of_head("cla", heads, query_width)
        if kv_heads < 1 or heads % kv_heads:
            raise InvalidConfig(f"cla: kv_heads must divide heads={heads}, got {kv_heads}.")
        self.sharing = config.sharing
        dims = Dims(heads, kv_heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=config.bias)

    def link(self, below: tuple[int, ...]) -> Link | None:
        """The lowest layer of its group, unless it is this one."""
        behind = len(below) % self.sharing
        if behind == 0:
            return None
        del self.to_key, self.to_value
        return Link(below[-behind], "all")

    def oracle_above(
        self, x: Float[Tensor, "L D"], below: Source
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "Hk L E"], Float[Tensor, "Hk L E"]]:
        """A query of each state beside the keys and values of the layer below."""
        query = torch.stack([self.oracle_query(state) for state in x], 1)
        return query, below.key[0], below.value[0]
