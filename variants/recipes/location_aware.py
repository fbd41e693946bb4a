"""Location-aware attention: the additive score knows where the step before has looked.

Chorowski et al., 2015, "Attention-based models for speech recognition",
https://arxiv.org/abs/1506.07503, section 2.1.

Deviations: those of the history `location_aware` and of the additive score. Sharpening is
`normalizer=sharpened`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "location_aware",
    Recipe(axes={"score": "additive", "history": "location_aware"}, main="history"),
    module=__name__,
    title="Additive attention that sees its last weights",
    citation=Citation(
        text="Chorowski et al., 2015", url="https://arxiv.org/abs/1506.07503", where="section 2.1"
    ),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
