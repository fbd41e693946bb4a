"""Attention whose weights select what is done next, where what is read is beside the point."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "neural_programmer",
    Recipe(axes={"score": "dot"}, main="score"),
    module=__name__,
    about="""
    Selection of operations and columns: softmax over products with a vector of each.

    Neelakantan, Le & Sutskever, 2016, "Neural programmer: inducing latent programs with gradient
    descent", https://arxiv.org/abs/1511.04834, section 2.2. It is the dot product under the name of
    the network that selects with it, the backbone `neural_programmer`.

    Deviations: those of the backbone `neural_programmer`; none of the attention.
    """,
    title="Selection of operations (neural programmer)",
    citation=Citation(
        text="Neelakantan et al., 2016",
        url="https://arxiv.org/abs/1511.04834",
        where="section 2.2",
    ),
    default_task=DefaultTask(task="table_questions"),
)
