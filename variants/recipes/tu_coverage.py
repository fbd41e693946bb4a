"""Attention with coverage: the additive score sees how much attention each key has had.

Tu et al., 2016, "Modeling coverage for neural machine translation",
https://arxiv.org/abs/1601.04811, section 3.1.

Deviations: those of the feedback `tu_coverage` and of the additive score.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "tu_coverage",
    Recipe(axes={"score": "additive", "feedback": "tu_coverage"}, main="feedback"),
    module=__name__,
    title="Additive attention with coverage",
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 3.1"
    ),
    cost=2.2,
    home=Home(task="transduction[rule=fert]"),
)
