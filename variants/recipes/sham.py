"""Sham (control): scaled dot product under another name.

No paper: a comparison of this entry with `scaled_dot` shows how far two equal variants come apart
by chance, and how often a verdict would call that a difference.

Deviations: none.
"""

from bench.api.registry import Home, Recipe, register_recipe

register_recipe(
    "sham",
    Recipe(axes={"score": "scaled_dot"}, main="score"),
    module=__name__,
    title="Scaled dot product under another name (control)",
    home=Home(task="transduction[rule=reverse]"),
    control=True,
)
