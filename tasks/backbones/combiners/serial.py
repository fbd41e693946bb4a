"""One source after the other: what was read from the first is part of the query of the second.

Libovický, Helcl & Mareček, 2018, "Input combination strategies for multi-source Transformer
decoder", https://arxiv.org/abs/1811.04716, section 3 (serial).

Deviations: none.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Attended, AttendOptions
from bench.api.combiner import (
    Answers,
    AttachSlot,
    Combiner,
    CombinerSizes,
    Residual,
    of_source,
)
from bench.api.config import NoOptions
from bench.api.registry import Citation, register
from bench.api.source import Memory, State


@register(
    "combiner",
    "serial",
    citation=Citation(
        text="Libovický et al., 2018",
        url="https://arxiv.org/abs/1811.04716",
        where="section 3, serial",
    ),
)
class SerialCombiner(Combiner):
    """x <- x + A_k(x) for each source k in turn, each in a residual sublayer of its own.

    The context that outputs see is the sum of the contexts of the sources.
    """

    needs = frozenset({"residual_sublayers"})

    def __init__(self, config: NoOptions, sizes: CombinerSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.context_width = self.one_width("serial")

    @property
    def num_sublayers(self) -> int:
        """One for each source."""
        return len(self.slots)

    def pass_through(
        self,
        x: Float[Tensor, "B L D"],
        around: Sequence[Residual],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: AttendOptions,
    ) -> tuple[Float[Tensor, "B L D"], Answers]:
        """Query one source, add its context, and query the next with the sum."""
        contexts: list[Tensor] = []
        found: list[Attended] = []
        parts = zip(self.slots, around, memories, states, strict=True)
        for index, (slot, one, memory, state) in enumerate(parts):
            context, attended = slot.attend(one.before(x), memory, state, **of_source(call, index))
            x = one.after(x, context)
            contexts.append(context)
            found.append(attended)
        return x, (sum(contexts[1:], contexts[0]), tuple(found))
