"""Monotonic chunkwise attention on additive scores: a walk, and a soft read of a small window.

Chiu & Raffel, 2018, "Monotonic chunkwise attention", https://arxiv.org/abs/1712.05382.

Deviations: those of the normalizer `mocha` and of the additive score; the noise before the sigmoid
has deviation 2, not 1.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mocha",
    Recipe(axes={"score": "additive", "normalizer": "mocha[noise=2.0]"}, main="normalizer"),
    module=__name__,
    title="Monotonic chunkwise attention",
    citation=Citation(text="Chiu & Raffel, 2018", url="https://arxiv.org/abs/1712.05382"),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
