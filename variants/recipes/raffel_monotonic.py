"""Monotonic attention on an additive score: reads the source once, from left to right.

Raffel et al., 2017, "Online and linear-time attention by enforcing monotonic alignments",
https://arxiv.org/abs/1704.00784, sections 2.2 to 2.5.

Deviations: those of the normalizer `raffel_monotonic` and of the additive score; the noise before
the sigmoid has deviation 3, not 1, and r starts at 0, not at -1, which trained better and more
steadily on short copies.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

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
)
