"""Several sources, each read by itself, and attention among what was read.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567.

Deviations: those of the decoder `bahdanau`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "multi_source_hierarchical",
    Recipe(
        axes={"score": "additive"},
        main="combiner",
        fixes={"combiner": "hierarchical", "decoder": "bahdanau"},
    ),
    module=__name__,
    title="Attention over the contexts of several sources",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="hierarchical combination",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
)
