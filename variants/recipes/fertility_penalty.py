"""Additive attention decoded by a beam that owes something for source words left unread.

Wu et al., 2016, "Google's neural machine translation system", https://arxiv.org/abs/1609.08144,
section 7, equation 14: the coverage penalty, here with beta = 0.2 and alpha = 0.6.

Deviations: those of the search `beam` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "fertility_penalty",
    Recipe(
        axes={"score": "additive"}, main="search", fixes={"search": "beam[coverage_penalty=0.2]"}
    ),
    module=__name__,
    title="Additive attention, beam with a coverage penalty",
    citation=Citation(
        text="Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
    default_task=DefaultTask(task="transduction[rule=copy,decode=true]"),
)
