"""No attention, but the summary of the source is part of every decoder input.

Cho et al., 2014, "Learning phrase representations using RNN encoder-decoder for statistical
machine translation", https://arxiv.org/abs/1406.1078, section 2.2.

Deviations: those of the decoder `none_input`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "none_input",
    Recipe(axes={}, fixes={"decoder": "none_input"}),
    module=__name__,
    title="Fixed vector at every step",
    citation=Citation(
        text="Cho et al., 2014", url="https://arxiv.org/abs/1406.1078", where="section 2.2"
    ),
    control="negative",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
