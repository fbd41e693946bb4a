"""Hard attention trained by REINFORCE: one key is drawn, and good draws become likelier.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.1.

Deviations: those of the normalizer `hard_reinforce`, the loss `reinforce` and the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "hard_reinforce",
    Recipe(
        axes={"score": "additive", "normalizer": "hard_reinforce", "loss": "reinforce"},
        main="normalizer",
    ),
    module=__name__,
    title="Hard attention trained by REINFORCE",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.1"
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
