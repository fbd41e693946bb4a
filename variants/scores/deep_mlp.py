"""Deep score: a perceptron of several layers on query and key.

Pavlopoulos et al., 2017, "Deeper attention to abusive user content moderation",
https://aclanthology.org/D17-1117, with the query term that the survey of Galassi et al., 2021,
"Attention in natural language processing", https://arxiv.org/abs/1902.02181, gives it.

Deviations: the bias of the last layer is left out, as it shifts all energies alike; the activation,
which the survey leaves open, is an option. Per-key features of history and position components
enter the first layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

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
from variants.scores.pair_blocks import block_steps


@dataclass(frozen=True, kw_only=True)
class DeepMlpConfig(Config):
    """Options of the deep score."""

    layers: Annotated[int, IntRange(2, 6)] = 3
    """Layers with weights, the last one to a single number included."""
    width: Annotated[int, IntRange(8, 256, log=True)] = 64
    """Units of every hidden layer, per head."""
    activation: Annotated[Literal["relu", "tanh"], Choices(("relu", "tanh"))] = "relu"
    """What follows every hidden layer."""

    def __post_init__(self) -> None:
        """Check sizes."""
        if self.layers < 2:
            raise InvalidConfig(f"deep_mlp: layers must be at least 2, got {self.layers}.")
        if self.width < 1:
            raise InvalidConfig(f"deep_mlp: width must be at least 1, got {self.width}.")


@register(
    "score",
    "deep_mlp",
    title="Deep score (several layers)",
    config=DeepMlpConfig,
    citation=Citation(text="Pavlopoulos et al., 2017", url="https://aclanthology.org/D17-1117"),
    cost=1.5,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class DeepMlpScore(Score):
    """v . f(W_n .. f(W_2 f(W_1 q + U k + b_1) + b_2) ..); time O(L S n d_a^2) per head.

    Where all pairs do not fit into one block, blocks of queries are computed again in the backward
    pass, so that memory is O(L S).
    """

    gives = frozenset({"key_local", "takes_features"})

    def __init__(self, config: DeepMlpConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width, deeper = dims.heads, config.width, config.layers - 2
        self.rectifies = config.activation == "relu"
        self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.maps = nn.ParameterList(xavier_per_head(heads, width, width) for _ in range(deeper))
        self.biases = nn.ParameterList(torch.zeros(heads, 1, width) for _ in range(deeper))
        self.starts = {"bias": 0.0} | {f"biases.{n}": 0.0 for n in range(deeper)}
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)
        self.feature_map: nn.Parameter | None = None
        if dims.num_features:
            self.feature_map = nn.Parameter(xavier_per_head(heads, dims.num_features, width))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """For each pair the square of the width a deeper layer; activations count as one."""
        width, deeper = self.v.shape[1], len(self.maps)
        unit = 2 + 2 + deeper * (2 * width + 2)
        return unit * width * batch * heads * queries * keys

    def prepare(self, source: Source) -> Tree:
        """Project the keys, once per source."""
        key = expand_heads(source.key, self.key_map.shape[0])
        return {"key": per_head_linear(key, self.key_map) + self.bias}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """All layers, block by block where one is not enough."""
        query = per_head_linear(call.query, self.query_map)
        key = leaf(call.memory.parts, self.branch, "key")
        rows = query.shape[0]
        row_step, step = block_steps(query, key.shape[2])
        if row_step >= rows and step >= query.shape[2]:
            return self._layers(query, key, features)
        shared = [None] * rows if features is None else features.split(row_step)
        parts = zip(query.split(row_step), key.split(row_step), shared, strict=False)
        return torch.cat([self._row(*part, step) for part in parts])

    def _row(self, query: Tensor, key: Tensor, features: Tensor | None, step: int) -> Energy:
        """Some rows, a step of queries at a time; splits, as slices would write whole gradients."""
        queries = query.split(step, 2)
        each: Sequence[Tensor | None] = [None] * len(queries)
        if features is not None:
            each = features.expand(-1, -1, query.shape[2], -1, -1).split(step, 2)
        found = [
            checkpoint(self._layers, q, key, f, use_reentrant=False, preserve_rng_state=False)
            for q, f in zip(queries, each, strict=True)
        ]
        return torch.cat(found, 2)

    def _layers(self, query: Tensor, key: Tensor, features: Tensor | None) -> Energy:
        hidden = query.unsqueeze(3) + key.unsqueeze(2)
        if features is not None and self.feature_map is not None:
            hidden = hidden + per_head_linear(features, self.feature_map)
        shape = hidden.shape[:-1]
        hidden = self._activate(hidden.flatten(2, 3))
        for weight, bias in zip(self.maps, self.biases, strict=True):
            hidden = self._activate(hidden @ weight + bias)
        # a product with one column would be five times slower, and its gradient lies crosswise
        return (hidden * self.v.transpose(1, 2)).sum(-1).view(shape)

    def _activate(self, hidden: Tensor) -> Tensor:
        """In the second case tanh, in code that is several times faster than that of tanh."""
        return torch.relu_(hidden) if self.rectifies else 2 * torch.sigmoid(2 * hidden) - 1

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Layer by layer for each key."""
        found = []
        for s in range(one.num_keys):
            inside = self.bias[one.head, 0] + one.query @ self.query_map[one.head]
            inside = inside + one.key[s] @ self.key_map[one.head]
            if features is not None and self.feature_map is not None:
                inside = inside + features[s] @ self.feature_map[one.head]
            layer = self._oracle_activate(inside)
            for weight, bias in zip(self.maps, self.biases, strict=True):
                layer = self._oracle_activate(layer @ weight[one.head] + bias[one.head, 0])
            found.append(layer @ self.v[one.head, :, 0])
        return torch.stack(found)

    def _oracle_activate(self, inside: Tensor) -> Tensor:
        if self.rectifies:
            return torch.where(inside > 0, inside, 0.0)
        return torch.tanh(inside)
