"""Softmax off by one: one is added to the denominator, so that a head may read almost nothing.

Miller, 2023, "Attention is off by one", https://www.evanmiller.org/attention-is-off-by-one.html
(there softmax_1).

Deviations: a row without any allowed key gives zeros, as the formula does.
"""

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy, Query
from bench.api.source import Tree
from variants.normalizers.sink_softmax import oracle_sink_softmax, sink_softmax


@register(
    "normalizer",
    "softmax_off_by_one",
    title="Softmax with one more in the denominator",
    citation=Citation(
        text="Miller, 2023", url="https://www.evanmiller.org/attention-is-off-by-one.html"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Miller proposes it against the very large activations of language models, which hinder "
        "their quantization, and reports no measurement. Nothing is quantized here."
    ),
)
class SoftmaxOffByOneNormalizer(Normalizer):
    """exp(e) / (1 + sum exp(e)) over the allowed keys; time O(L S) per head."""

    has_sink = True
    visible_alone = True

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row, with a logit of zero that reads nothing."""
        return Normalized(sink_softmax(energy, allowed, energy.new_zeros(1, 1, 1)))

    def sink_energy(self, query: Query) -> Float[Tensor, " 1"]:
        """Zero, for every head."""
        return query.new_zeros(1)

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """One row by loops."""
        return oracle_sink_softmax(energy, allowed, energy.new_zeros(()))
