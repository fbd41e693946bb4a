"""No positions: what the order of the sequence is worth, by leaving it out.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, without its
section 3.5. Under causal self-attention the number of visible keys still differs by place.

Deviations: none.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "none_position",
    Recipe(axes={"position": "none", "score": "scaled_dot"}),
    module=__name__,
    title="No positions",
    citation=Citation(
        text="Vaswani et al., 2017",
        url="https://arxiv.org/abs/1706.03762",
        where="without section 3.5",
    ),
    default_task=DefaultTask(task="offset"),
)
