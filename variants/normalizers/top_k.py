"""Top-k: only the keys of the highest energies are read, by softmax over them.

Zhao et al., 2019, "Explicit sparse transformer: concentrated attention through explicit selection",
https://arxiv.org/abs/1912.11637, section 2.

Deviations: a row without any allowed key gives zeros, not NaN. Keys that tie with the k-th are read
too, as in the paper.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax


@dataclass(frozen=True, kw_only=True)
class TopKConfig(Config):
    """Options of the selection."""

    k: Annotated[int, IntRange(2, 64, log=True)] = 8
    """Keys that are read (keys)."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.k < 1:
            raise InvalidConfig(f"top_k: k must be at least 1, got {self.k}.")


@register(
    "normalizer",
    "top_k",
    title="Softmax over the k best keys",
    config=TopKConfig,
    citation=Citation(
        text="Zhao et al., 2019", url="https://arxiv.org/abs/1912.11637", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Zhao et al. report better translations (0.13 to 4.5 million pairs of sentences), captions "
        "and language models than with softmax. Here the baseline recalls nearly every pair, which "
        "leaves no room above it."
    ),
)
class TopKNormalizer(Normalizer):
    """Softmax over the keys whose energy is at least the k-th highest; time O(L S) and a selection.

    Keys that are not read get no gradient.
    """

    gives = frozenset({"simplex", "jumps"})
    visible_alone = True

    def __init__(self, config: TopKConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.k = config.k

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Hide all but the best keys of each row."""
        ranked = energy.detach()
        if allowed is not None:
            ranked = ranked.masked_fill(~allowed, float("-inf"))
        threshold = ranked.topk(min(self.k, ranked.shape[-1]), -1).values[..., -1:]
        best = ranked >= threshold
        return Normalized(masked_softmax(energy, best if allowed is None else best & allowed))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """A key is read where fewer than k allowed keys are above it."""
        seen = [float(e.detach()) for e in energy]
        above = [
            sum(allowed[j] and seen[j] > seen[s] for j in range(one.num_keys))
            for s in range(one.num_keys)
        ]
        best = [allowed[s] and above[s] < self.k for s in range(one.num_keys)]
        return oracle_softmax(energy, best)
