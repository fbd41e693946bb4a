"""Hierarchical attention: learned vectors ask words and then sentences, without any other query.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, sections 2.2 and 2.3. The two levels are the backbone
`hierarchical`.

Deviations: those of the score `context_vector` and of the backbone `hierarchical`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "han",
    Recipe(axes={"score": "context_vector"}, main="score"),
    module=__name__,
    title="Hierarchical attention (words, then sentences)",
    citation=Citation(
        text="Yang et al., 2016",
        url="https://aclanthology.org/N16-1174",
        where="sections 2.2 and 2.3",
    ),
    default_task=DefaultTask(task="hier_doc"),
)
