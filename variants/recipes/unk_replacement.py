"""Additive attention that says, for a word it does not know, the source word it looked at.

Luong, Pham & Manning, 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 4, after Luong et al., 2015,
https://arxiv.org/abs/1410.8206.

Deviations: those of the search `greedy` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "unk_replacement",
    Recipe(axes={"score": "additive"}, main="search", fixes={"search": "greedy[replace_unk=true]"}),
    module=__name__,
    title="Additive attention, unknown words replaced",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 4"
    ),
    default_task=DefaultTask(task="oov_copy[decode=true]"),
)
