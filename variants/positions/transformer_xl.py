"""Transformer-XL positions: sinusoids of the distance are projected to keys, with two biases.

Dai et al., 2019, "Transformer-XL: attentive language models beyond a fixed-length context",
https://arxiv.org/abs/1901.02860, section 3.3.

Deviations: no memory of an earlier segment, which belongs to the network around attention; decoding
keeps all earlier keys. Under self-attention in both directions distances have a sign, as in XLNet.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.positions.relative_distances import distances, shift

BASE = 10000.0
START = 0.02
"""Deviation of both biases at the start, as in the released code."""


@register(
    "position",
    "transformer_xl",
    title="Relative positions (Transformer-XL)",
    citation=Citation(
        text="Dai et al., 2019", url="https://arxiv.org/abs/1901.02860", where="section 3.3"
    ),
    cost=1.3,
    default_task=DefaultTask(task="offset"),
)
class TransformerXl(Position):
    """(u . k_j + (q_i + v) . W R(i - j)) / sqrt(E) is added to the energy.

    R(d) is the sinusoid of distance d in the width D of the model; W, u and v belong to a head.
    Time O((L + S) D E + L (L + S) E) per head, memory O(L S) whether or not weights are wanted.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "relative positions need one sequence, and cross attention has two",
        "pool": "relative positions need one sequence, and the query of pooling is not in it",
    }
    changes_energy = True
    energy_reads = frozenset({"queries", "keys"})

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.width = dims.model_width
        self.scale = dims.key_width**-0.5
        self.key_bias = nn.Parameter(START * torch.randn(dims.heads, dims.key_width))
        self.place_bias = nn.Parameter(START * torch.randn(dims.heads, dims.query_width))
        self.to_key = nn.Parameter(xavier_per_head(dims.heads, self.width, dims.query_width))

    def energy(self, call: Call) -> Float[Tensor, "B Hq L S"]:
        """Score all distances that occur once a query, and shift them to their keys."""
        heads, keys = call.query.shape[1], call.memory.num_keys
        distance = distances(call)
        future = call.query.shape[2] - 1 if call.causal else 0
        if future:  # nobody sees these keys
            distance = distance[:-future]
        sinusoids = self._sinusoids(distance).to(call.query.dtype)
        by_place = per_head_linear(sinusoids.expand(1, heads, -1, -1), self.to_key)
        query = call.query + self.place_bias[:, None]
        scores = functional.pad(query @ by_place.transpose(-1, -2), (0, future))
        content = expand_heads(call.memory.source.key, heads) @ self.key_bias.unsqueeze(-1)
        return (shift(scores, keys) + content.transpose(-1, -2)) * self.scale

    def _sinusoids(self, distance: Int[Tensor, " n"]) -> Float[Tensor, "n D"]:
        """Sines, then cosines, of query minus key, in float64: angles grow with the distance."""
        even = torch.arange(0, self.width, 2, dtype=torch.float64, device=distance.device)
        angle = -distance[:, None] * torch.exp(even * (-math.log(BASE) / self.width))
        return torch.cat((angle.sin(), angle.cos()[:, : self.width // 2]), 1)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One sinusoid per key, projected for it alone."""
        found = []
        num_sines = (self.width + 1) // 2
        for s in range(one.num_keys):
            sinusoid = []
            for unit in range(self.width):
                pair = unit % num_sines
                angle = (one.position - s) / BASE ** (2 * pair / self.width)
                sinusoid.append(math.sin(angle) if unit < num_sines else math.cos(angle))
            place = torch.mv(self.to_key[one.head].t(), one.key.new_tensor(sinusoid))
            total = one.key.new_zeros(())
            for e in range(one.key.shape[1]):
                total = total + self.key_bias[one.head, e] * one.key[s, e]
            for e in range(one.query.shape[0]):
                total = total + (one.query[e] + self.place_bias[one.head, e]) * place[e]
            found.append(total / one.key.shape[1] ** 0.5)
        return torch.stack(found)
