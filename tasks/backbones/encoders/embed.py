"""Embeddings as they are: each state knows its own token only.

"Concatenation" in the sources; Kalchbrenner-style lookups without context.
"""

from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.backbone import Encoded, Encoder
from bench.api.config import NoOptions
from bench.api.registry import register


@register("encoder", "embed", title="embeddings without context")
class EmbedEncoder(Encoder):
    """States are the embedded tokens; the summary is their mean."""

    def __init__(self, config: NoOptions, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.output_width = embedding_width
        self.summary_width = embedding_width

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Average the real tokens."""
        if mask is None:
            return Encoded(x, None, x.mean(1))
        kept = x * mask.unsqueeze(-1)
        count = mask.sum(1, keepdim=True).clamp(min=1)
        return Encoded(kept, mask, kept.sum(1) / count)
