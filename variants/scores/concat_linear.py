"""Concatenation without tanh (control): a linear form of query and key, which ignores the query.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `concat` as early versions print it, without v
and without tanh). The query adds one number to all energies of its row, softmax cancels it, and
every query gets the same weights, as in pooling.

Deviations: with several heads each has its own vectors.
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
    "concat_linear",
    title="Concatenation without tanh (control)",
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1, early version",
    ),
    control="negative",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class ConcatLinearScore(Score):
    """u.q + w.k; w.k is computed once per source; time O(L S + S Ek + L Eq) per head."""

    gives = frozenset({"key_local"})

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.query_map = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, 1))
        self.key_map = nn.Parameter(xavier_per_head(dims.heads, dims.key_width, 1))

    def prepare(self, source: Source) -> Tree:
        """Project the keys, once per source."""
        key = expand_heads(source.key, self.key_map.shape[0])
        return {"key": per_head_linear(key, self.key_map)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One number of each query plus one of each key."""
        key = leaf(call.memory.parts, self.branch, "key")
        return per_head_linear(call.query, self.query_map) + key.transpose(-1, -2)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """One dot product of the joined vectors, key by key."""
        joined = torch.cat((self.query_map[one.head, :, 0], self.key_map[one.head, :, 0]))
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            for index, x in enumerate((*one.query, *one.key[s])):
                total = total + joined[index] * x
            found.append(total)
        return torch.stack(found)
