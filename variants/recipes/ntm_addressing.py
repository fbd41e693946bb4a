"""Addressing of the neural Turing machine: cosine content, gated with a shift of the last weights.

Graves, Wayne & Danihelka, 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401,
section 3.3.

Deviations: those of the normalizer `ntm_addressing`. The query's strength multiplies the cosine
score's fixed one, 10, because a strength near 1 cannot focus among many keys.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "ntm_addressing",
    Recipe(
        axes={"score": "cosine[learned=false]", "normalizer": "ntm_addressing"}, main="normalizer"
    ),
    module=__name__,
    title="Content and location addressing of a Turing machine",
    citation=Citation(
        text="Graves et al., 2014", url="https://arxiv.org/abs/1410.5401", where="section 3.3"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    cost=1.7,
)
