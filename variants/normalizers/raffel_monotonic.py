"""Monotonic attention: each query walks on over the keys from the last stop to the next.

Raffel et al., 2017, "Online and linear-time attention by enforcing monotonic alignments",
https://arxiv.org/abs/1704.00784, sections 2.2 (hard walk), 2.3 (expected alignment), 2.4 (energy)
and 2.5 (noise).

Deviations: the direction v of an additive score is not normalized (g only rescales it), and r is
added to any score; each head has its own r. Expected alignments are computed exactly; the
published closed form is `computation=parallel`, is not certified, and misses up to 0.04 of a weight
in float32.
"""

from dataclasses import dataclass

from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.normalizers.monotonic_walk import MonotonicConfig, MonotonicNormalizer


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
    """p = sigmoid(e + r); weights sum to at most one; the rest ran off the end and reads zero.

    Time O(L S) beyond the score, in L + S rounds; streaming touches each key once.
    """

    stream_name = "raffel_monotonic.energy"


register_recipe(
    "raffel_monotonic",
    Recipe(
        axes={"score": "additive", "normalizer": "raffel_monotonic[noise=3.0,offset=0.0]"},
        main="normalizer",
    ),
    module=__name__,
    title="Monotonic attention",
    citation=Citation(
        text="Raffel et al., 2017",
        url="https://arxiv.org/abs/1704.00784",
        where="sections 2.2 to 2.5",
    ),
    revision=2,
    cost=1.4,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Raffel et al. report linear time and reading word by word at a quality near that of soft "
        "attention, and no gain of quality over it, on recordings of 630 speakers (TIMIT) and on "
        "texts. Delays are measured on `incremental_translation` and on speech."
    ),
    deviations=(
        "those of the normalizer `raffel_monotonic` and of the additive score; the noise "
        "before the sigmoid has standard deviation 3, not 1, and r starts at 0, not at -1, which "
        "trained better and more steadily on short copies."
    ),
)
