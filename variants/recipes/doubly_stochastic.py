"""Doubly stochastic attention: weights that should sum to one over target words too.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.2.1.

Deviations: those of the loss `doubly_stochastic` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "doubly_stochastic",
    Recipe(axes={"score": "additive", "loss": "doubly_stochastic"}, main="loss"),
    module=__name__,
    title="Additive attention, doubly stochastic",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.2.1"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
