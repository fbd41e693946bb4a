"""Additive attention that also copies the source words it points at.

See, Liu & Manning, 2017, "Get to the point: summarization with pointer-generator networks",
https://arxiv.org/abs/1704.04368, section 2.2.

Deviations: those of the output `pointer_generator` and of the additive score. The
paper's coverage is a loss of its own.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "pointer_generator",
    Recipe(axes={"score": "additive", "output": "pointer_generator"}, main="output"),
    module=__name__,
    title="Pointer-generator",
    citation=Citation(
        text="See et al., 2017", url="https://arxiv.org/abs/1704.04368", where="section 2.2"
    ),
    cost=1.1,
    default_task=DefaultTask(task="oov_copy"),
)
