"""Monotonic local attention: the general score in a window that moves on with the target.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.2.

Deviations: those of the mask `luong_local_m` and of the general score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "luong_local_m",
    Recipe(axes={"mask": "luong_local_m", "score": "general"}, main="mask"),
    module=__name__,
    title="Local attention that moves on by one key a step",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.2"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    cost=1.2,
)
