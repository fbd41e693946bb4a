"""Sigmoid attention: each weight is a sigmoid of its own energy, lowered by the logarithm of n.

Ramapuram et al., 2025, "Theory, analysis, and best practices for sigmoid self-attention",
https://arxiv.org/abs/2409.04431, section 2.

Deviations: n is the number of keys that a query may see; the paper takes the length of the
sequence, which a query under causality does not know.
"""

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.sigmoid_weights import oracle_sigmoid, sigmoid_weights
from variants.normalizers.visible_keys import log_visible_keys


@register(
    "normalizer",
    "sigmoid_attention",
    title="Sigmoid attention",
    citation=Citation(
        text="Ramapuram et al., 2025", url="https://arxiv.org/abs/2409.04431", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Ramapuram et al. report the quality of softmax on language, pictures and speech, with a "
        "fused kernel that is 17% faster on H100 GPUs, and no gain of quality over it. The score "
        "of this task does not count time."
    ),
)
class SigmoidAttentionNormalizer(Normalizer):
    """sigmoid(e - log n) on allowed keys, n their number; weights do not compete. Time O(L S)."""

    gives = frozenset({"unit_weights"})
    visible_alone = True
    removes = frozenset({"weights"})

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Weigh each key alone."""
        return Normalized(sigmoid_weights(energy - log_visible_keys(energy, allowed), allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """sigmoid(e - log n) is 1 / (1 + n exp(-e))."""
        return oracle_sigmoid(energy, allowed, max(1, sum(allowed)))
