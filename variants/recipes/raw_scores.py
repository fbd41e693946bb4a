"""Raw scores as weights (control): dot-product attention without any normalization.

No paper: the linear control. What softmax is good for is what it wins over this.

Deviations: those of the normalizer `none`.
"""

from bench.api.registry import DefaultTask, Recipe, register_recipe

register_recipe(
    "raw_scores",
    Recipe(axes={"normalizer": "none"}, main="normalizer"),
    module=__name__,
    title="Raw scores as weights (control)",
    default_task=DefaultTask(task="recall"),
    control="negative",
)
