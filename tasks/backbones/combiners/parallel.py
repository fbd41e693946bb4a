"""All sources at once with one query; their contexts are added.

Libovický, Helcl & Mareček, 2018, "Input combination strategies for multi-source Transformer
decoder", https://arxiv.org/abs/1811.04716, section 3 (parallel).

Deviations: dropout falls on the sum, not on every context; a recurrent decoder may use it too.
"""

from jaxtyping import Float
from torch import Tensor

from bench.api.combiner import AttachSlot, Combiner, CombinerSizes
from bench.api.config import NoOptions
from bench.api.registry import Citation, register


@register(
    "combiner",
    "parallel",
    citation=Citation(
        text="Libovický et al., 2018",
        url="https://arxiv.org/abs/1811.04716",
        where="section 3, parallel",
    ),
)
class ParallelCombiner(Combiner):
    """c = c1 + c2 + ..."""

    def __init__(self, config: NoOptions, sizes: CombinerSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.context_width = self.one_width("parallel")

    def combine(
        self, query: Float[Tensor, "B L D"], contexts: list[Float[Tensor, "B L _"]]
    ) -> Float[Tensor, "B L Dv"]:
        """Add the contexts."""
        return sum(contexts[1:], contexts[0])
