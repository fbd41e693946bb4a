"""Several sources, each with attention of its own; their contexts stand side by side.

Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710.

Deviations: those of the pattern `luong_local_p` and of the wiring `luong`.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "multi_source",
    Recipe(
        axes={"score": "general", "pattern": "luong_local_p"},
        main="combiner",
        fixes={"combiner": "concat", "wiring": "luong"},
    ),
    module=__name__,
    title="Attention to each of several sources",
    citation=Citation(
        text="Zoph & Knight, 2016",
        url="https://arxiv.org/abs/1601.00710",
        where="multi-source attention",
    ),
    cost=1.9,
    home=Home(task="two_source"),
)
