"""Global attention after the decoder step: the context joins the output layer.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1; `input_feeding` is section 3.3.

Deviations: those of the general score and of the decoder `luong`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "luong_global",
    Recipe(axes={"score": "general"}, main="decoder", fixes={"decoder": "luong"}),
    module=__name__,
    title="Global attention after the decoder step",
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="sections 3.1 and 3.3",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("standard",),
)
