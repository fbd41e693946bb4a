"""Position bias: the additive score sees the places of key and query and the length.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.1.

Deviations: those of the position component `cohn_position` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "cohn_position",
    Recipe(axes={"score": "additive", "position": "cohn_position"}, main="position"),
    module=__name__,
    title="Additive attention with places as features",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.1"
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
