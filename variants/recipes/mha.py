"""Multi-head attention: several scaled dot products of projected states side by side.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.2.2.

Deviations: none.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mha",
    Recipe(axes={"head": "multi", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Multi-head attention",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.2.2"
    ),
    default_task=DefaultTask(task="recall"),
)
