"""Global attention after the decoder step: the new state asks, and the context joins the readout.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1; `input_feeding` is section 3.3.

Deviations: those of the general score and of the wiring `luong`.
"""

from bench.api.registry import Citation, Home, Recipe, register_recipe

register_recipe(
    "luong_global",
    Recipe(axes={"score": "general"}, main="wiring", fixes={"wiring": "luong"}),
    module=__name__,
    title="Global attention after the decoder step",
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="sections 3.1 and 3.3",
    ),
    home=Home(task="transduction[rule=reverse]"),
)
