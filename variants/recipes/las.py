"""Listen, attend and spell: a pyramid listens, the product of two perceptrons attends.

Chan, Jaitly, Le & Vinyals, 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211.

Deviations: one halving of the length where the paper has three, because sources of the bench are
words and not frames of ten milliseconds; those of encoder `pyramid`, decoder `las`, score
`mlp_dot`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "las",
    Recipe(
        axes={"score": "mlp_dot"},
        main="decoder",
        fixes={"encoder": "pyramid[layers=1]", "decoder": "las"},
    ),
    module=__name__,
    title="Listen, attend and spell",
    citation=Citation(
        text="Chan et al., 2016", url="https://arxiv.org/abs/1508.01211", where="section 3"
    ),
    cost=3.4,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
