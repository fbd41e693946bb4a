"""Activated general score: the bilinear form and a bias inside an activation.

Ma et al., 2017, "Interactive attention networks for aspect-level sentiment classification",
https://arxiv.org/abs/1709.00893, the score of section 2 (gamma), as named by Galassi et al., 2021,
"Attention in natural language processing", https://arxiv.org/abs/1902.02181, table 3.

Deviations: the matrix is stored as that of `general`, so that the activation does not start
saturated, and the bias starts at zero; with several heads each has its own; the activation may be
chosen.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from variants.per_head_linear import per_head_linear, xavier_per_head


@dataclass(frozen=True, kw_only=True)
class GeneralActivatedConfig(Config):
    """Options of the activated general score."""

    activation: Annotated[Literal["tanh", "relu"], Choices(("tanh", "relu"))] = "tanh"
    """What the sum goes through; the paper has tanh, which bounds the energy by one."""


@register(
    "score",
    "general_activated",
    title="Activated general score",
    revision=2,
    config=GeneralActivatedConfig,
    citation=Citation(
        text="Ma et al., 2017", url="https://arxiv.org/abs/1709.00893", where="section 2"
    ),
    cost=1.15,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Ma et al. use it to find words of a review that tell an opinion, and report no "
        "measurement beside other scores. Here it finds places as well as the baseline does."
    ),
)
class GeneralActivatedScore(Score):
    """f(k.W q + b); time O(L S Ek + L Eq Ek) per head.

    Under tanh no weight exceeds e^2 / (e^2 + S - 1), whatever is learned.
    """

    gives = frozenset({"key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: GeneralActivatedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.activation = torch.tanh if config.activation == "tanh" else torch.relu
        self.weight = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, dims.key_width))
        self.scale = dims.key_width**-0.5
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, 1))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """A dot product, an addition and an activation (counted as one) for each pair."""
        return batch * heads * queries * keys * (2 * dims.key_width + 2)

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Project the queries, one matrix product, then the activation."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        product = self.scale * per_head_linear(call.query, self.weight) @ key.transpose(-1, -2)
        return self.activation(product + self.bias)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The bilinear form, then the activation, key by key."""
        matrix = self.weight[one.head] / one.key.shape[1] ** 0.5
        found = []
        for s in range(one.num_keys):
            form = one.query @ (matrix @ one.key[s])
            found.append(self.activation(form + self.bias[one.head, 0, 0]))
        return torch.stack(found)
