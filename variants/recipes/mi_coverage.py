"""Attention with coverage embeddings: the additive score sees what is left to say of each key.

Mi, Sankaran, Wang & Ittycheriah, 2016, "Coverage embedding models for neural machine translation",
https://arxiv.org/abs/1605.03148, section 3.

Deviations: those of the history `mi_coverage`, the loss `mi_coverage_norm` and the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mi_coverage",
    Recipe(
        axes={"score": "additive", "history": "mi_coverage", "loss": "mi_coverage_norm"},
        main="history",
    ),
    module=__name__,
    title="Additive attention with coverage embeddings",
    citation=Citation(
        text="Mi et al., 2016", url="https://arxiv.org/abs/1605.03148", where="section 3"
    ),
    cost=2.8,
    default_task=DefaultTask(task="transduction[rule=fert]"),
)
