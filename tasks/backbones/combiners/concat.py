"""Contexts side by side: every source has its own attention.

Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710
(multi-source attention); with one source it is ordinary attention.

Deviations: none; the decoder decides how the joined context is used.
"""

from bench.api.combiner import Combiner
from bench.api.registry import Citation, register


@register(
    "combiner",
    "concat",
    citation=Citation(
        text="Zoph & Knight, 2016",
        url="https://arxiv.org/abs/1601.00710",
        where="multi-source attention",
    ),
)
class ConcatCombiner(Combiner):
    """c = [c1; c2; ...]; the cost is that of each source, one after the other."""
