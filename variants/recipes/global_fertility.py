"""Additive attention whose coverage of a word must be likely under a predicted fertility.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.3.

Deviations: those of the loss `global_fertility` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "global_fertility",
    Recipe(axes={"score": "additive", "loss": "global_fertility"}, main="loss"),
    module=__name__,
    title="Additive attention with global fertility",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
