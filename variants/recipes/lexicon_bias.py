"""Additive attention with a translation lexicon as a bias of the softmax.

Arthur, Neubig & Nakamura, 2016, "Incorporating discrete translation lexicons into neural machine
translation", https://arxiv.org/abs/1606.02006, section 3.2.

Deviations: those of the output `lexicon_bias` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "lexicon_bias",
    Recipe(axes={"score": "additive", "output": "lexicon_bias"}, main="output"),
    module=__name__,
    title="Lexicon as a bias",
    citation=Citation(
        text="Arthur et al., 2016", url="https://arxiv.org/abs/1606.02006", where="section 3.2"
    ),
    cost=1.3,
    default_task=DefaultTask(task="transduction[rule=dict]"),
)
