"""Intra-attention in the decoder: it recalls any of its earlier states, and asks the source too.

Cheng et al., 2016, "Long short-term memory-networks for machine reading",
https://arxiv.org/abs/1601.06733, section 3.3.

Deviations: those of the decoder `lstmn` and of the additive score; the encoder is the backbone's.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "lstmn_decoder",
    Recipe(axes={"score": "additive"}, main="decoder", fixes={"decoder": "lstmn"}),
    module=__name__,
    title="Decoder with a memory tape (intra-attention)",
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1601.06733", where="section 3.3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
