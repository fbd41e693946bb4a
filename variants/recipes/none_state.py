"""No attention (control): the source reaches the decoder through its first state alone.

Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 2.

Deviations: those of the decoder `none_state`; the score is named but never asked.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "none_state",
    Recipe(axes={}, main="decoder", fixes={"decoder": "none_state"}),
    module=__name__,
    title="No attention, source in the first state (control)",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    control="negative",
)
