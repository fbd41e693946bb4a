"""Luong attention with input feeding: the decoder hears what its last attention concluded.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.3.

Deviations: those of the general score and of the wiring `luong`.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "luong_input_feeding",
    Recipe(axes={"score": "general"}, main="wiring", fixes={"wiring": "luong[input_feeding=true]"}),
    module=__name__,
    title="Global attention with input feeding",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.3"
    ),
    cost=1.9,
    home=Home(task="transduction[rule=reverse]"),
)
