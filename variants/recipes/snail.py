"""Attention block of SNAIL: one small head, whose answer is joined to its input.

Mishra et al., 2018, "A simple neural attentive meta-learner", https://arxiv.org/abs/1707.03141,
section 3. Its blocks of dilated convolutions are the backbone `snail`.

Deviations: those of the head and the backbone `snail`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "snail",
    Recipe(axes={"head": "snail", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Attention among dilated convolutions (SNAIL)",
    citation=Citation(
        text="Mishra et al., 2018", url="https://arxiv.org/abs/1707.03141", where="section 3"
    ),
    cost=2.8,
    default_task=DefaultTask(task="recall", backbone="snail"),
)
