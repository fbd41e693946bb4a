"""Raw scores as weights (control): dot-product attention without any normalization.

No paper: the linear control. What softmax is good for is what it wins over this.

Deviations: those of the alignment `none`.
"""

from bench.api.registry import Home, Recipe, register_recipe

register_recipe(
    "raw_scores",
    Recipe(axes={"alignment": "none"}, main="alignment"),
    module=__name__,
    title="Raw scores as weights (control)",
    home=Home(task="recall"),
    control=True,
)
