"""Additive attention with CopyNet's shared softmax over words and source places.

Gu, Lu, Li & Li, 2016, "Incorporating copying mechanism in sequence-to-sequence learning",
https://arxiv.org/abs/1603.06393, section 3.

Deviations: those of the output `copynet` and of the additive score; the decoder is the backbone's.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "copynet",
    Recipe(axes={"score": "additive", "output": "copynet"}, main="output"),
    module=__name__,
    title="CopyNet",
    citation=Citation(
        text="Gu et al., 2016", url="https://arxiv.org/abs/1603.06393", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="oov_copy"),
)
