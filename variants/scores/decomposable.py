"""Decomposable score: the dot product of one perceptron's outputs for query and key.

Parikh et al., 2016, "A decomposable attention model for natural language inference",
https://arxiv.org/abs/1606.01933, section 3.1, equation 1. Comparing and aggregating is the backbone
`pair`; within a sentence, section 3.4, the position `distance_bias` is added.

Deviations: the hidden width defaults to 64, not 200; no dropout inside the perceptron.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear


@dataclass(frozen=True, kw_only=True)
class DecomposableConfig(Config):
    """Options of the decomposable score."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Units of both layers of the perceptron, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"decomposable: width must be at least 1, got {self.width}.")


@register(
    "score",
    "decomposable",
    title="Decomposable score (Parikh)",
    revision=2,
    config=DecomposableConfig,
    citation=Citation(
        text="Parikh et al., 2016",
        url="https://arxiv.org/abs/1606.01933",
        where="section 3.1, equation 1",
    ),
    default_task=DefaultTask(task="nli_syn"),
    does_not_show=(
        "Parikh et al. report 86.3% on the 550,000 pairs of SNLI with 382,000 parameters, as "
        "much as networks with recurrent encoders and many more parameters. They save "
        "parameters compared with other networks. Here the baseline has the same network, so only "
        "the score differs."
    ),
)
class DecomposableScore(Score):
    """F(q) . F(k), F two ReLU layers shared by queries and keys.

    F is evaluated L + S times and not L S times; then time O(L S width) per head, as a matrix
    product. Energies are never negative.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"dot_form", "key_local"})

    starts = {"first_bias": 0.0, "second_bias": 0.0}

    def __init__(self, config: DecomposableConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.first = nn.Parameter(0.01 * torch.randn(heads, dims.query_width, width))
        self.first_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.second = nn.Parameter(0.01 * torch.randn(heads, width, width))
        self.second_bias = nn.Parameter(torch.zeros(heads, 1, width))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """A multiply-add for each unit and pair."""
        return 2 * batch * heads * queries * keys * self.second.shape[2]

    def prepare(self, source: Source) -> Tree:
        """Run the keys through the perceptron, once per source."""
        return {"key": self._perceptron(expand_heads(source.key, self.first.shape[0]))}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product of what the perceptron made of both."""
        query, key, _ = self.dot_form(call)
        return query @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """The perceptron's outputs, unscaled."""
        key = leaf(call.memory.parts, self.branch, "key")
        return self._perceptron(call.query), key, 1.0

    def _perceptron(self, x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n W"]:
        hidden = torch.relu(per_head_linear(x, self.first) + self.first_bias)
        return torch.relu(per_head_linear(hidden, self.second) + self.second_bias)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The perceptron and the sum of products, key by key."""
        asked = self._oracle_perceptron(one.query, one.head)
        found = []
        for s in range(one.num_keys):
            answered = self._oracle_perceptron(one.key[s], one.head)
            found.append((asked * answered).sum())
        return torch.stack(found)

    def _oracle_perceptron(self, x: Float[Tensor, " E"], head: int) -> Tensor:
        for weight, bias in ((self.first, self.first_bias), (self.second, self.second_bias)):
            total = bias[head, 0] + x @ weight[head]
            x = torch.where(total > 0, total, 0.0)
        return x
