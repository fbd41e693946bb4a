"""A/A control (control): scaled dot product under another name.

No paper: a comparison of this entry with `scaled_dot` shows how far two equal variants come apart
by chance, and how often a verdict would call that a difference.

Deviations: none.
"""

from bench.api.registry import DefaultTask, Recipe, register_recipe

register_recipe(
    "aa_control",
    Recipe(axes={"score": "scaled_dot"}, main="score"),
    module=__name__,
    title="Scaled dot product under another name (control)",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    control="aa",
)
