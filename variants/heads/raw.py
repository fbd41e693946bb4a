"""Raw heads: states as they are, one head, no projection.

Bahdanau et al., 2015, "Neural machine translation by jointly learning to align and translate",
https://arxiv.org/abs/1409.0473, section 3.1: only the score has parameters.

Deviations: none.
"""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.config import NoOptions
from bench.api.heads import Heads
from bench.api.registry import Citation, register
from bench.api.source import Source


@register(
    "head",
    "raw",
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="section 3.1"
    ),
)
class RawHeads(Heads):
    """Queries and keys are the states themselves."""

    def __init__(
        self,
        config: NoOptions,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        self.dims = Dims(1, 1, query_width, source_width, source_width, query_width, regime)
        self.output_width = source_width

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B 1 L D"]:
        """One head that sees everything."""
        return x.unsqueeze(1)

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Keys and values are both the states."""
        state = x.unsqueeze(1)
        return Source(key=state, value=state, mask=mask, tokens=tokens)

    def merge(self, output: Float[Tensor, "B 1 L Ev"]) -> Float[Tensor, "B L Ev"]:
        """Drop the head axis."""
        return output.squeeze(1)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "1 D"]:
        """The state as it is."""
        return x[None]

    def oracle_source(
        self, x: Float[Tensor, " D"]
    ) -> tuple[Float[Tensor, "1 D"], Float[Tensor, "1 D"]]:
        """The state as it is, twice."""
        return x[None], x[None]

    def oracle_merge(self, output: Float[Tensor, "1 Ev"]) -> Float[Tensor, " Ev"]:
        """The only head."""
        return output[0]
