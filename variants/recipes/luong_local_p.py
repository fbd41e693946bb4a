"""Local attention with a predicted center: the general score under a Gaussian window.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.2.

Deviations: those of the mask `luong_local_p` and of the general score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "luong_local_p",
    Recipe(axes={"mask": "luong_local_p", "score": "general"}, main="mask"),
    module=__name__,
    title="Local attention around a predicted place",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.2"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
