"""Markov condition: the additive score sees the weights of the step before.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.2.

Deviations: those of the history component `cohn_markov` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "cohn_markov",
    Recipe(axes={"score": "additive", "history": "cohn_markov"}, main="history"),
    module=__name__,
    title="Additive attention with the Markov condition",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.2"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
