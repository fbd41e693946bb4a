"""Arg-max value: dot-product attention that weighs all keys and reads the heaviest alone.

Bengio, Leonard & Courville, 2013, "Estimating or propagating gradients through stochastic neurons
for conditional computation", https://arxiv.org/abs/1308.3432 (the straight-through gradient).

Deviations: those of the readout `max`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "max_readout",
    Recipe(axes={"readout": "max"}, main="readout"),
    module=__name__,
    title="Value of the heaviest key alone",
    citation=Citation(text="Bengio et al., 2013", url="https://arxiv.org/abs/1308.3432"),
    default_task=DefaultTask(task="recall"),
    cost=1.1,
)
