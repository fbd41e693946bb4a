"""Convolutional attention: energies from convolutions over the source, gated by the query.

Allamanis et al., 2016, "A convolutional attention network for extreme summarization of source
code", https://arxiv.org/abs/1602.03001.

Deviations: the gate is the query itself where it has `filters2` units, and else a learned map of it
without bias; every layer keeps the length and reads zeros instead of padding, where the paper
pads the source once for all three; the squared norm has 1e-12 added; filters start at PyTorch's
scale for convolutions. An even width reaches one further to the left, as in the authors' code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.scores.gated_convolution import (
    EPS,
    GATE_SLOPE,
    SOURCE_SLOPE,
    last_by_channel,
    loop_convolve,
    source_map,
    unit_gate,
)


@dataclass(frozen=True, kw_only=True)
class ConvAttentionConfig(Config):
    """Options of convolutional attention."""

    filters1: Annotated[int, IntRange(4, 64, log=True)] = 8
    """Channels of the first layer, k1, per head."""
    filters2: Annotated[int, IntRange(4, 64, log=True)] = 8
    """Channels of the second layer and of the gate, k2, per head."""
    width1: Annotated[int, IntRange(1, 32, log=True)] = 24
    """Width of the first layer, w1 (keys)."""
    width2: Annotated[int, IntRange(1, 32, log=True)] = 29
    """Width of the second layer, w2 (keys)."""
    width3: Annotated[int, IntRange(1, 32, log=True)] = 10
    """Width of the last layer, w3 (keys)."""

    def __post_init__(self) -> None:
        """Check that all sizes are positive."""
        for name, size in vars(self).items():
            if size < 1:
                raise InvalidConfig(f"conv_attention: {name} must be at least 1, got {size}.")


@register(
    "score",
    "conv_attention",
    title="Convolutional attention",
    config=ConvAttentionConfig,
    citation=Citation(text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001"),
    cost=3.0,
    default_task=DefaultTask(task="after_marker"),
)
class ConvAttentionScore(Score):
    """conv3(F / |F|), F = conv2(LeakyReLU(conv1(k))) * LeakyReLU(gate(q)).

    All that follows the gate is linear in F, so the last convolution and the norm of each channel
    are made once per source: time O(S (w1 Ek k1 + w2 k1 k2 + w3 k2)) per source and O(L S k2) per
    head.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "its convolutions and its norm depend on future keys"
    }

    def __init__(self, config: ConvAttentionConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, first, second = dims.heads, config.filters1, config.filters2
        self.heads = heads
        self.conv1 = nn.Conv1d(heads * dims.key_width, heads * first, config.width1, groups=heads)
        self.conv2 = nn.Conv1d(heads * first, heads * second, config.width2, groups=heads)
        self.conv3 = nn.Conv1d(heads * second, heads, config.width3, groups=heads)
        self.gate_map: nn.Parameter | None = None
        if dims.query_width != second:
            self.gate_map = nn.Parameter(xavier_per_head(heads, dims.query_width, second))

    def prepare(self, source: Source) -> Tree:
        """Both layers of the source, the last convolution by channel, and channel norms."""
        padding = ~source.key_mask()[:, None]
        key = expand_heads(source.key, self.heads).transpose(-1, -2).flatten(1, 2)
        layer2 = source_map(self.conv1, self.conv2, key, padding)
        return last_by_channel(layer2, self.conv3.weight, self.heads)._asdict()

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Gate over the norm of the gated map, times what was prepared."""
        channel = leaf(call.memory.parts, self.branch, "channel")
        squares = leaf(call.memory.parts, self.branch, "squares")
        gate = call.query
        if self.gate_map is not None:
            gate = per_head_linear(gate, self.gate_map)
        bias = self.conv3.bias
        assert bias is not None, "the last convolution has a bias"
        return unit_gate(gate, squares) @ channel.transpose(-1, -2) + bias.view(-1, 1, 1)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The three layers one after the other, position by position, as the paper has them."""
        layer1 = functional.leaky_relu(loop_convolve(self.conv1, one.key, one.head), SOURCE_SLOPE)
        layer2 = loop_convolve(self.conv2, layer1, one.head)
        gate = one.query if self.gate_map is None else one.query @ self.gate_map[one.head]
        gated = torch.stack([row * functional.leaky_relu(gate, GATE_SLOPE) for row in layer2])
        gated = gated / (sum((x * x for x in gated.flatten()), gated.new_zeros(())) + EPS) ** 0.5
        return loop_convolve(self.conv3, gated, one.head)[:, 0]
