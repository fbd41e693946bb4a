"""Additive attention with a penalty where a source word is covered too often.

After Wu et al., 2016, "Google's neural machine translation system",
https://arxiv.org/abs/1609.08144, section 7.

Deviations: those of the loss `fertility_hinge` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "fertility_hinge",
    Recipe(axes={"score": "additive", "loss": "fertility_hinge"}, main="loss"),
    module=__name__,
    title="Additive attention, limited coverage",
    citation=Citation(
        text="after Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
