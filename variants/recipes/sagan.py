"""Self-attention of SAGAN: unscaled products of an eighth of the channels behind a closed gate.

Zhang et al., 2019, "Self-attention generative adversarial networks",
https://arxiv.org/abs/1805.08318, section 3.

Deviations: those of the head `sagan`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "sagan",
    Recipe(axes={"head": "sagan", "score": "dot"}, main="head"),
    module=__name__,
    title="Gated self-attention of few channels (SAGAN)",
    citation=Citation(
        text="Zhang et al., 2019", url="https://arxiv.org/abs/1805.08318", where="section 3"
    ),
    default_task=DefaultTask(task="digits", backbone="image_classifier[width=32,layers=2]"),
)
