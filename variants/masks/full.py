"""Full attention: every real key that is not in the future.

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.2.3.

Deviations: none.
"""

from bench.api.call import Call
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed


@register(
    "mask",
    "full",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.2.3"
    ),
)
class FullMask(Mask):
    """All real keys, up to the query under causal self-attention."""

    kind = "full"

    def window(self, call: Call) -> tuple[Allowed | None, None]:
        """The mask of the call itself."""
        return call.allowed, None

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Every visible key, post-softmax weight one."""
        return [one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys
