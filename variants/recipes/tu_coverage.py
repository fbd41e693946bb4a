"""Attention with coverage: the additive score sees how much attention each key has had.

Tu et al., 2016, "Modeling coverage for neural machine translation",
https://arxiv.org/abs/1601.04811, section 3.1.

Deviations: those of the history `tu_coverage` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "tu_coverage",
    Recipe(axes={"score": "additive", "history": "tu_coverage"}, main="history"),
    module=__name__,
    title="Additive attention with coverage",
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 3.1"
    ),
    cost=2.2,
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
