"""Attention between decoder steps: the previous state asks, and the context feeds the next state.

Bahdanau et al., 2015, "Neural machine translation by jointly learning to align and translate",
https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.1.2.

Deviations: those of the additive score and of the decoder `bahdanau`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "bahdanau",
    Recipe(axes={"score": "additive"}, main="score", fixes={"decoder": "bahdanau"}),
    module=__name__,
    title="Attention between decoder steps, additive score",
    citation=Citation(
        text="Bahdanau et al., 2015",
        url="https://arxiv.org/abs/1409.0473",
        where="section 3.1, appendix A.1.2",
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("standard",),
)
