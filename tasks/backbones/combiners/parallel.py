"""All sources at once with one query; their contexts are added.

Libovický, Helcl & Mareček, 2018, "Input combination strategies for multi-source Transformer
decoder", https://arxiv.org/abs/1811.04716, section 3 (parallel).

Deviations: dropout falls on the sum, not on every context; a recurrent decoder may use it too.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from bench.api.combiner import Answers, AttachSlot, Combiner, CombinerSizes
from bench.api.config import NoOptions
from bench.api.registry import Citation, register
from bench.api.source import Memory, State


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

    def attend(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: dict[str, Any],
    ) -> Answers:
        """Query every slot and add the contexts."""
        contexts, attended = self.ask(query, memories, states, call)
        return sum(contexts[1:], contexts[0]), attended
