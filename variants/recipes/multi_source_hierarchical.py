"""Several sources, each read by itself, and attention among what was read.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567.

Deviations: those of the wiring `bahdanau`.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "multi_source_hierarchical",
    Recipe(
        axes={"score": "additive"},
        main="combiner",
        fixes={"combiner": "hierarchical", "wiring": "bahdanau"},
    ),
    module=__name__,
    title="Attention over the contexts of several sources",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="hierarchical combination",
    ),
    cost=1.9,
    home=Home(task="two_source"),
)
