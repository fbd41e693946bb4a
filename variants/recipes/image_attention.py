"""Soft attention of image captioning: additive score, gated context, everything read out at once.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, section 4.2.

Deviations: those of the decoder `gated` and of the additive score; keys are the states of the
backbone's encoder, where the paper has 196 features of an image (`encoder=embed` is as blind to
the order of keys as those are). Those of the loss `doubly_stochastic`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "image_attention",
    Recipe(
        axes={"score": "additive", "loss": "doubly_stochastic"},
        main="decoder",
        fixes={"decoder": "gated"},
    ),
    module=__name__,
    title="Soft attention with a context gate",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.2"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
