"""Additive attention with a penalty unless every source word is covered once.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, in the released code.

Deviations: those of the loss `coverage_eq1` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "coverage_eq1",
    Recipe(axes={"score": "additive", "loss": "coverage_eq1"}, main="loss"),
    module=__name__,
    title="Additive attention, coverage of one",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="released code"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
