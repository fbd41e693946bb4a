"""Learned sink: each head has a logit of its own in the denominator, which reads nothing.

OpenAI, 2025, "gpt-oss-120b & gpt-oss-20b model card", https://arxiv.org/abs/2508.10925, section 2
(a learned bias in the denominator of the softmax).

Deviations: the logits start at zero, where it is softmax off by one; the model card does not say
where they start.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy, Query
from bench.api.source import Tree
from variants.normalizers.sink_softmax import oracle_sink_softmax, sink_softmax


@register(
    "normalizer",
    "learned_sink",
    title="Softmax with a learned sink",
    citation=Citation(
        text="OpenAI, 2025", url="https://arxiv.org/abs/2508.10925", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "The models of OpenAI that have it are of 20 and 120 billion parameters. Their model card "
        "reports no comparison with and without the sink, so it claims no advantage."
    ),
)
class LearnedSinkNormalizer(Normalizer):
    """exp(e) / (exp(b) + sum exp(e)) over the allowed keys, b learned by head; time O(L S)."""

    starts = {"sink": 0.0}
    has_sink = True
    visible_alone = True

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.sink = nn.Parameter(torch.zeros(dims.heads, 1, 1))

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row together with the sink of its head."""
        return Normalized(sink_softmax(energy, allowed, self.sink))

    def sink_energy(self, query: Query) -> Float[Tensor, " Hq"]:
        """The logit of each head."""
        return self.sink.flatten()

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """One row by loops."""
        return oracle_sink_softmax(energy, allowed, self.sink[one.head, 0, 0])
