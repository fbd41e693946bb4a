"""Attention over a rationale: a generator selects tokens, and nothing else is read.

Lei, Barzilay & Jaakkola, 2016, "Rationalizing neural predictions",
https://arxiv.org/abs/1606.04155.

Deviations: those of the encoder `rationale` and of the loss `rationale`; the selected tokens are
pooled by attention, where the paper takes the last state of a recurrent network.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "rationale",
    Recipe(axes={"loss": "rationale"}, main="loss", fixes={"encoder": "rationale"}),
    module=__name__,
    title="Rationale: selected tokens only",
    citation=Citation(text="Lei et al., 2016", url="https://arxiv.org/abs/1606.04155"),
    cost=3.5,
    default_task=DefaultTask(task="after_marker"),
)
