"""Last key: each query sees only the last key that it may see.

Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 2: the last state of a recurrent network represents the
whole sequence; here it is written as attention.

Deviations: none.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from bench.api.call import Call
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, register


@register(
    "mask",
    "last_key",
    title="Last key",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
)
class LastKeyMask(Mask):
    """The last real key, and under causal self-attention the last that has come; time O(L S)."""

    kind = "window"
    removes = frozenset({"stream"})
    unsupported = {"draws": "one key is left, so there is nothing to draw"}

    def window(self, call: Call) -> tuple[Bool[Tensor, "#B 1 #L S"], None]:
        """Allowed keys after which none is allowed."""
        allowed = call.allowed
        if allowed is None:
            num_keys = call.key_position.shape[0]
            return (call.key_position == num_keys - 1)[None, None, None], None
        place = torch.where(allowed, call.key_position, -1)
        return allowed & (place == place.amax(-1, keepdim=True)), None

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """One position at most."""
        last = max(s for s in range(one.num_keys) if one.visible(s))
        return [s == last for s in range(one.num_keys)], [1.0] * one.num_keys
