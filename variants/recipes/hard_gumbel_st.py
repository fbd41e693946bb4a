"""Hard attention with straight-through Gumbel gradients.

Jang, Gu & Poole, 2017, "Categorical reparameterization with Gumbel-softmax",
https://arxiv.org/abs/1611.01144, sections 2.1 and 2.2.

Deviations: those of the normalizer `hard_gumbel_st` and of the additive score; the temperature
stays at 1, for training was steadier than when it fell to 0.5; the paper is not about attention.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "hard_gumbel_st",
    Recipe(
        axes={"score": "additive", "normalizer": "hard_gumbel_st[tau_end=1.0]"}, main="normalizer"
    ),
    module=__name__,
    title="Hard attention, straight-through Gumbel",
    citation=Citation(
        text="Jang et al., 2017",
        url="https://arxiv.org/abs/1611.01144",
        where="sections 2.1 and 2.2",
    ),
    revision=2,
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
