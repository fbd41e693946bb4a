"""Logistic sigmoid: each weight is a sigmoid of its own energy, and keys do not compete.

Galassi et al., 2021, "Attention in natural language processing",
https://arxiv.org/abs/1902.02181, on distribution functions.

Deviations: none. Weights need not sum to one, so parts that need a distribution over keys are
refused.
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


@register(
    "normalizer",
    "logistic_sigmoid",
    title="Independent sigmoids as weights",
    citation=Citation(
        text="Galassi et al., 2021",
        url="https://arxiv.org/abs/1902.02181",
        where="distributions",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Galassi et al. list it in a survey and report no measurement. Here the baseline recalls "
        "nearly every pair, which leaves no room above it."
    ),
)
class LogisticSigmoidNormalizer(Normalizer):
    """sigmoid(e) on allowed keys, each alone; time O(L S) per head."""

    gives = frozenset({"unit_weights"})
    visible_alone = True
    removes = frozenset({"weights"})

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Weigh each key alone."""
        return Normalized(sigmoid_weights(energy, allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """1 / (1 + exp(-e)), key by key."""
        return oracle_sigmoid(energy, allowed, 1)
