"""Hard attention trained on its exact likelihood: the keys are summed out.

Wu, Shapiro & Cotterell, 2018, "Hard non-monotonic attention for character-level transduction",
https://arxiv.org/abs/1808.10024.

Deviations: those of the output `hard_exact` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "hard_exact",
    Recipe(axes={"score": "additive", "output": "hard_exact"}, main="output"),
    module=__name__,
    title="Hard attention, marginalized exactly",
    citation=Citation(text="Wu et al., 2018", url="https://arxiv.org/abs/1808.10024"),
    cost=1.6,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
