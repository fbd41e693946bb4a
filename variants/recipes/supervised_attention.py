"""Additive attention whose weights are taught from gold alignments.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186.

Deviations: those of the loss `supervised` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "supervised_attention",
    Recipe(axes={"score": "additive", "loss": "supervised"}, main="loss"),
    module=__name__,
    title="Supervised attention",
    citation=Citation(text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186"),
    default_task=DefaultTask(task="transduction[rule=swap]"),
)
