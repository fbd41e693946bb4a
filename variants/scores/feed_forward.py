"""Feed-forward score: one bounded number per key, without any query.

Raffel and Ellis, 2015, "Feed-forward networks with attention can solve some long-term memory
problems", https://arxiv.org/abs/1512.08756, sections 2 and 3.

Deviations: with several heads each has its own weights.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head


@register(
    "score",
    "feed_forward",
    title="Feed-forward attention, without a query",
    citation=Citation(
        text="Raffel and Ellis, 2015",
        url="https://arxiv.org/abs/1512.08756",
        where="sections 2 and 3",
    ),
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=birnn]"),
)
class FeedForwardScore(Score):
    """tanh(w.k + b), once per source; time O(L S + S Ek) per head.

    Made for pooling: where there are several queries, all get the same weights. The tanh bounds
    every weight by e^2 / (e^2 + S - 1).
    """

    gives = frozenset({"key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.weight = nn.Parameter(xavier_per_head(dims.heads, dims.key_width, 1))
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, 1))

    def prepare(self, source: Source) -> Tree:
        """The energy of every key."""
        key = expand_heads(source.key, self.weight.shape[0])
        return {"energy": torch.tanh(per_head_linear(key, self.weight) + self.bias)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """The same row for every query."""
        energy = leaf(call.memory.parts, self.branch, "energy").transpose(-1, -2)
        return energy.expand(-1, -1, call.query.shape[2], -1)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Sum of products, key by key."""
        found = []
        for s in range(one.num_keys):
            total = self.bias[one.head, 0, 0]
            for e in range(one.key.shape[1]):
                total = total + self.weight[one.head, e, 0] * one.key[s, e]
            found.append(torch.tanh(total))
        return torch.stack(found)
