"""Dot product of two perceptrons, one on the query and one on the key.

Chan, Jaitly, Le & Vinyals, 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211,
section 3.2, equations 9 to 11.

Deviations: the paper leaves the perceptrons open; here each has one hidden layer of tanh. All
weights start within 0.1 (ADR 19), and biases at zero.
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
from variants.per_head_linear import per_head_linear, uniform_per_head


@dataclass(frozen=True, kw_only=True)
class MlpDotConfig(Config):
    """Options of the two perceptrons."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden and output units of both, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"mlp_dot: width must be at least 1, got {self.width}.")


@register(
    "score",
    "mlp_dot",
    title="Dot product of two perceptrons",
    revision=2,
    config=MlpDotConfig,
    citation=Citation(
        text="Chan et al., 2016",
        url="https://arxiv.org/abs/1508.01211",
        where="section 3.2, equations 9-11",
    ),
    cost=1.1,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Chan et al. use it in a speech recognizer and do not compare it with other scores. The "
        "paper claims no advantage."
    ),
)
class MlpDotScore(Score):
    """A tanh(B q + b) . C tanh(D k + d), the key's side once per source; O(L S width) per head."""

    gives = frozenset({"dot_form", "key_local"})

    starts = {"query_bias": 0.0, "key_bias": 0.0}

    def __init__(self, config: MlpDotConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_in = nn.Parameter(uniform_per_head(heads, dims.query_width, width))
        self.query_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.query_out = nn.Parameter(uniform_per_head(heads, width, width))
        self.key_in = nn.Parameter(uniform_per_head(heads, dims.key_width, width))
        self.key_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.key_out = nn.Parameter(uniform_per_head(heads, width, width))

    def prepare(self, source: Source) -> Tree:
        """Run the perceptron of the keys."""
        key = expand_heads(source.key, self.key_in.shape[0])
        hidden = torch.tanh(per_head_linear(key, self.key_in) + self.key_bias)
        return {"key": per_head_linear(hidden, self.key_out)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product of the perceptrons' outputs."""
        query, key, _ = self.dot_form(call)
        return query @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Outputs of both perceptrons, without a scale."""
        hidden = torch.tanh(per_head_linear(call.query, self.query_in) + self.query_bias)
        query = per_head_linear(hidden, self.query_out)
        return query, leaf(call.memory.parts, self.branch, "key"), 1.0

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The product of two small networks, key by key."""
        query = self._oracle_say(one.query, self.query_in, self.query_bias, self.query_out, one)
        found = []
        for s in range(one.num_keys):
            key = self._oracle_say(one.key[s], self.key_in, self.key_bias, self.key_out, one)
            found.append((query * key).sum())
        return torch.stack(found)

    @staticmethod
    def _oracle_say(
        x: Tensor, entering: Tensor, bias: Tensor, leaving: Tensor, one: OneQuery
    ) -> Tensor:
        hidden = torch.tanh(x @ entering[one.head] + bias[one.head, 0])
        return hidden @ leaving[one.head]
