"""Last state: the state of the last real token stands for the whole sequence.

Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 2. It is the mask `last_key`, which leaves one key and
so gives it all the weight whatever the score says.

Deviations: none.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "last_state",
    Recipe(axes={"score": "uniform", "mask": "last_key"}, main="mask"),
    module=__name__,
    title="Last state",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    cost=1.5,
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=uni_rnn]"),
)
