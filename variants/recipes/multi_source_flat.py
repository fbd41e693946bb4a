"""Several sources whose positions compete in one softmax.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567.

Deviations: those of the combiner `flat` and of the decoder `bahdanau`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "multi_source_flat",
    Recipe(
        axes={"score": "additive"},
        main="combiner",
        fixes={"combiner": "flat", "decoder": "bahdanau"},
    ),
    module=__name__,
    title="One softmax over the positions of several sources",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="flat combination",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
)
