"""Mean pooling: the average of the states of all real tokens.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, table 2 (HN-AVE), which it compares attention with. It is the
uniform score under the name by which classifiers know it.

Deviations: none.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mean_pooling",
    Recipe(axes={"score": "uniform"}, main="score"),
    module=__name__,
    title="Mean pooling",
    citation=Citation(
        text="Yang et al., 2016", url="https://aclanthology.org/N16-1174", where="table 2"
    ),
    cost=5.0,
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=birnn]"),
)
