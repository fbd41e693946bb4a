"""Local fertility: the additive score sees the summed weights of nearby keys.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.3.

Deviations: those of the history component `cohn_local_fertility` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "cohn_local_fertility",
    Recipe(axes={"score": "additive", "history": "cohn_local_fertility"}, main="history"),
    module=__name__,
    title="Additive attention with local fertility",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
