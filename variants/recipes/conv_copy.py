"""Convolutional attention with a second convolutional head that copies.

Allamanis, Peng & Sutton, 2016, "A convolutional attention network for extreme summarization of
source code", https://arxiv.org/abs/1602.03001, section 2.2.

Deviations: those of the score `conv_attention`, here with the sizes of the paper's copying model,
and of the output `conv_copy`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "conv_copy",
    Recipe(
        axes={
            "score": "conv_attention[filters1=32,filters2=16,width1=18,width2=19,width3=2]",
            "output": "conv_copy",
        },
        main="output",
    ),
    module=__name__,
    title="Convolutional attention that copies",
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 2.2"
    ),
    cost=2.6,
    default_task=DefaultTask(task="oov_copy"),
)
