"""Segment-to-segment transduction: a latent monotonic alignment, marginalized exactly.

Yu, Buys & Blunsom, 2016, "Online segment to segment neural transduction",
https://arxiv.org/abs/1609.08194, section 2. With `encoder=uni_rnn` it is online: no word depends on
source tokens after its place.

Deviations: those of the output `ssnt` and of the decoder `target_only`; the score is named but
never asked.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "ssnt",
    Recipe(axes={"output": "ssnt"}, main="output", fixes={"decoder": "target_only"}),
    module=__name__,
    title="Segment-to-segment transduction",
    citation=Citation(
        text="Yu et al., 2016", url="https://arxiv.org/abs/1609.08194", where="section 2"
    ),
    cost=1.7,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
