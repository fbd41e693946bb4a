"""ALiBi: energies fall with the distance of the key, with a fixed slope for each head.

Press, Smith & Lewis, 2022, "Train short, test long: attention with linear biases enables input
length extrapolation", https://arxiv.org/abs/2108.12409, section 3.

Deviations: under self-attention in both directions the distance has no sign, which the paper leaves
open. Where the number of heads is no power of two, slopes are those of the released code.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.one_sequence import ONE_SEQUENCE
from variants.positions.relative_distances import diagonals, distances
from variants.precision import wide_format

LAST_EXPONENT = 8.0
"""The smallest slope is 2 to minus this, where the number of heads is a power of two."""


@register(
    "position",
    "alibi",
    title="ALiBi",
    citation=Citation(
        text="Press et al., 2022", url="https://arxiv.org/abs/2108.12409", where="section 3"
    ),
    default_task=DefaultTask(task="offset"),
)
class Alibi(Position):
    """-m_h |i - j| is added to the energy; m_h = 2^(-8 h / H), h from 1 to H.

    Has no parameters. Time O(L S) per head.
    """

    unsupported = ONE_SEQUENCE
    changes_energy = True
    by_place = True

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.heads = dims.heads

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """Multiply every distance by every slope, in float32 at least."""
        wide = wide_format(call.query.dtype)
        distance = distances(call).abs().to(wide)
        slope = slopes(self.heads, distance)
        return diagonals((-slope[:, None] * distance).to(call.query.dtype), call)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One product per key."""
        power = 1
        while 2 * power <= self.heads:
            power = 2 * power
        if one.head < power:
            exponent = 8 * (one.head + 1) / power
        else:  # every other slope of twice as many heads
            exponent = 8 * (2 * (one.head - power) + 1) / (2 * power)
        slope = 1 / 2**exponent
        return one.key.new_tensor([-slope * abs(one.position - s) for s in range(one.num_keys)])


def slopes(heads: int, like: Tensor) -> Float[Tensor, " Hq"]:
    """A geometric sequence for a power of two; heads beyond it get every other one of the next."""
    power = 1 << (heads.bit_length() - 1)
    head = torch.arange(heads, dtype=like.dtype, device=like.device)
    first = (head + 1) * (LAST_EXPONENT / power)
    rest = (2 * (head - power) + 1) * (LAST_EXPONENT / (2 * power))
    return torch.exp2(-torch.where(head < power, first, rest))
