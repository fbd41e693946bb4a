"""Say in one sentence which choices it joins; here an additive score and 1.5-entmax.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: those of its components.
"""

from bench.api.registry import DefaultTask, Recipe, register_recipe

register_recipe(
    "new_name",
    Recipe(axes={"score": "additive", "normalizer": "entmax15"}, main="score"),
    module=__name__,
    title="The name that tables print",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
