"""Arg-max value: dot-product attention that weighs all keys and reads the heaviest alone.

Bengio, Leonard & Courville, 2013, "Estimating or propagating gradients through stochastic neurons
for conditional computation", https://arxiv.org/abs/1308.3432 (the straight-through gradient).

Deviations: those of the aggregate `max`.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "max_aggregate",
    Recipe(axes={"aggregate": "max"}, main="aggregate"),
    module=__name__,
    title="Value of the heaviest key alone",
    citation=Citation(text="Bengio et al., 2013", url="https://arxiv.org/abs/1308.3432"),
    home=Home(task="recall"),
    cost=1.1,
)
