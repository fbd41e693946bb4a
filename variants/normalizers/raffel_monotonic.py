"""Monotonic attention: walk over the keys from where the last query stopped, until one stops you.

Raffel et al., 2017, "Online and linear-time attention by enforcing monotonic alignments",
https://arxiv.org/abs/1704.00784, sections 2.2 (hard walk), 2.3 (expected normalizer), 2.4 (energy)
and 2.5 (noise).

Deviations: the direction v of an additive score is not normalized (g only rescales it), and r is
added to any score; each head has its own r. Expected normalizers are computed exactly; the
published closed form is `computation=parallel`, is not certified, and misses up to 0.04 of a weight
in float32.
"""

from dataclasses import dataclass

from bench.api.registry import Citation, register
from variants._monotonic import MonotonicConfig, MonotonicNormalizer


@dataclass(frozen=True, kw_only=True)
class RaffelMonotonicConfig(MonotonicConfig):
    """Options of monotonic attention."""


@register(
    "normalizer",
    "raffel_monotonic",
    config=RaffelMonotonicConfig,
    citation=Citation(
        text="Raffel et al., 2017",
        url="https://arxiv.org/abs/1704.00784",
        where="sections 2.2 to 2.5",
    ),
)
class RaffelMonotonicNormalizer(MonotonicNormalizer):
    """p = sigmoid(e + r); weights sum to at most one, the rest ran off the end and reads zero.

    Time O(L S) beyond the score, in L + S rounds; streaming touches each key once.
    """

    stream_name = "raffel_monotonic.energy"
