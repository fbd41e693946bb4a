"""Additive score with tanh as a short sum of sines, which makes it one matrix product.

The score is that of Bahdanau et al., 2015, "Neural machine translation by jointly learning to align
and translate", https://arxiv.org/abs/1409.0473, appendix A.1.2. By sin(a + b) = sin a cos b +
cos a sin b, a sum of M sines of q + k is a product of 2 M features of q with 2 M features of k, so
that fast code for dot products (fused attention, tensor cores) applies.

Deviations: an approximation. Each pre-activation is clipped to half the reach X, as beyond X the
sum of sines would turn back and change its sign; inside, tanh is off by at most 5e-5, 2.6e-4 and
8.2e-4 for X of 4, 8 and 16, and an energy by at most as much times the sum of |v|. Gradients are
those of the sum. The hidden width is 64 by default, not 1000; weights start at Xavier's scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.precision import at_least_single

FREQUENCIES: dict[int, tuple[float, ...]] = {
    4: (0.4861132, 1.396493, 1.984468, 2.913239, 4.155182, 5.546471),
    8: (0.2405214, 0.7700145, 1.367303, 2.009066, 2.682559, 3.381865, 4.103741, 4.842636),
    16: (
        *(0.1757982, 0.5281253, 0.8824723, 1.239719, 1.600309, 1.96437),
        *(2.331849, 2.702612, 3.07649, 3.45327, 3.832662, 4.211098),
    ),
}
"""By reach X: the w of tanh(x) ~ sum c sin(w x) on |x| <= X, of a minimax fit in both w and c."""
AMPLITUDES: dict[int, tuple[float, ...]] = {
    4: (1.15492, 0.1714568, 0.05613849, 0.02355435, 0.003870259, 0.000481605),
    8: (
        *(1.271797, 0.3717497, 0.1473755, 0.05625166),
        *(0.02032866, 0.007011405, 0.002322888, 0.0008165244),
    ),
    16: (
        *(1.257649, 0.3805316, 0.1897292, 0.1045202, 0.05905985, 0.03350479),
        *(0.01895467, 0.01067198, 0.005975868, 0.003330682, 0.001841505, 0.001459277),
    ),
}
"""The c that go with them."""
ERRORS: dict[int, float] = {4: 5e-5, 8: 2.6e-4, 16: 8.2e-4}
"""Bound of |tanh(x) - sum| on |x| <= X."""


@dataclass(frozen=True, kw_only=True)
class AdditiveFourierConfig(Config):
    """Options of the additive score by sines."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units d_a, per head."""
    reach: Annotated[int, Choices((4, 8, 16))] = 8
    """Largest sum X of the two clipped pre-activations; 6, 8 and 12 sines a unit."""

    def __post_init__(self) -> None:
        """Check the width and that there is a fit."""
        if self.width < 1:
            raise InvalidConfig(f"additive_fourier: width must be at least 1, got {self.width}.")
        if self.reach not in ERRORS:
            raise InvalidConfig(f"additive_fourier: reach must be 4, 8 or 16, got {self.reach}.")


@register(
    "score",
    "additive_fourier",
    title="Additive score by sines",
    config=AdditiveFourierConfig,
    citation=Citation(
        text="Bahdanau et al., 2015",
        url="https://arxiv.org/abs/1409.0473",
        where="appendix A.1.2, approximated",
    ),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class AdditiveFourierScore(Score):
    """v . T(clip(W q) + clip(U k + b)), T(x) = sum_m c_m sin(w_m x); time O(L S M d_a) per head."""

    gives = frozenset({"dot_form", "key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: AdditiveFourierConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.clip = config.reach / 2
        self.frequencies = FREQUENCIES[config.reach]
        self.amplitudes = AMPLITUDES[config.reach]
        self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """A dot product of two features a sine and unit."""
        features = 2 * len(self.frequencies) * self.v.shape[1]
        return 2 * batch * heads * queries * keys * features

    def prepare(self, source: Source) -> Tree:
        """Cosines and sines of the projected keys, once per source."""
        key = expand_heads(source.key, self.key_map.shape[0])
        angle = self._angle(per_head_linear(key, self.key_map) + self.bias)
        return {"key": torch.cat((angle.cos(), angle.sin()), -1).to(key.dtype)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product."""
        query, key, _ = self.dot_form(call)
        return query @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Sines and cosines of the query, weighed, and those of the key."""
        angle = self._angle(per_head_linear(call.query, self.query_map))
        weight = self.v * _row(self.v, self.amplitudes)
        weighed = (
            torch.cat((angle.sin(), angle.cos()), -1) * weight.flatten(1).repeat(1, 2)[:, None]
        )
        return weighed.to(call.query.dtype), leaf(call.memory.parts, self.branch, "key"), 1.0

    def _angle(self, x: Float[Tensor, "B H N D"]) -> Float[Tensor, "B H N DM"]:
        x = at_least_single(x).clamp(-self.clip, self.clip)
        return (x.unsqueeze(-1) * _row(x, self.frequencies)).flatten(-2)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The sines of the sum, key by key and frequency by frequency."""
        found = []
        for s in range(one.num_keys):
            asked = one.query @ self.query_map[one.head]
            given = one.key[s] @ self.key_map[one.head] + self.bias[one.head, 0]
            inside = asked.clip(-self.clip, self.clip) + given.clip(-self.clip, self.clip)
            unit = torch.zeros_like(inside)
            for frequency, amplitude in zip(self.frequencies, self.amplitudes, strict=True):
                unit = unit + amplitude * torch.sin(frequency * inside)
            found.append(unit @ self.v[one.head, :, 0])
        return torch.stack(found)


def _row(like: Tensor, numbers: Sequence[float]) -> Float[Tensor, " M"]:
    """Constants beside a tensor, filled in there: a copy of a list makes the host wait."""
    return torch.stack([like.new_full((), number) for number in numbers])
