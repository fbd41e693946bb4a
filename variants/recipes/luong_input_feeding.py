"""Luong attention with input feeding: the decoder hears what its last attention concluded.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.3.

Deviations: those of the general score and of the decoder `luong`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "luong_input_feeding",
    Recipe(
        axes={"score": "general"}, main="decoder", fixes={"decoder": "luong[input_feeding=true]"}
    ),
    module=__name__,
    title="Global attention with input feeding",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
