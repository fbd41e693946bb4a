"""Attention over a sentence and an image at once: visual features are further source tokens.

Huang et al., 2016, "Attention-based multimodal neural machine translation",
https://aclanthology.org/W16-2360.

Deviations: those of the encoder `multimodal`, of the decoder `luong` and of the general score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "multimodal_tokens",
    Recipe(
        axes={"score": "general"},
        main="encoder",
        fixes={"encoder": "multimodal", "decoder": "luong"},
    ),
    module=__name__,
    title="Image features as source tokens",
    citation=Citation(text="Huang et al., 2016", url="https://aclanthology.org/W16-2360"),
    default_task=DefaultTask(task="scene_translation"),
)
