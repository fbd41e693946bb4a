"""Coverage of See: the additive score sees the sum of earlier weights, and a late loss limits it.

See, Liu & Manning, 2017, "Get to the point: summarization with pointer-generator networks",
https://arxiv.org/abs/1704.04368, section 2.3.

Deviations: those of the loss `coverage_loss` and of the additive score; the sum is the history
`cohn_local_fertility` with a window of no neighbors, which is the same mathematics. The paper's
pointer-generator is an output of its own.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "coverage_loss",
    Recipe(
        axes={
            "score": "additive",
            "history": "cohn_local_fertility[window=0]",
            "loss": "coverage_loss",
        },
        main="loss",
    ),
    module=__name__,
    title="Additive attention with coverage and its loss",
    citation=Citation(
        text="See et al., 2017", url="https://arxiv.org/abs/1704.04368", where="section 2.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
