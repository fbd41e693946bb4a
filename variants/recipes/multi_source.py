"""Several sources, each with attention of its own; their contexts stand side by side.

Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710.

Deviations: those of the mask `luong_local_p` and of the decoder `luong`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "multi_source",
    Recipe(
        axes={"score": "general", "mask": "luong_local_p"},
        main="combiner",
        fixes={"combiner": "concat", "decoder": "luong"},
    ),
    module=__name__,
    title="Attention to each of several sources",
    citation=Citation(
        text="Zoph & Knight, 2016",
        url="https://arxiv.org/abs/1601.00710",
        where="multi-source attention",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
)
