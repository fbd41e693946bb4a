"""Structural biases: the additive score sees places, the last weights and the summed weights.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.

Deviations: those of `cohn_position`, `cohn_markov` and `cohn_local_fertility`. The paper's losses,
`global_fertility` and the joint loss `agreement_trace`, are added as `loss=` and `direction=`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "cohn_structural",
    Recipe(
        axes={
            "score": "additive",
            "position": "cohn_position",
            "history": "cohn_markov+cohn_local_fertility",
        },
        main="score",
    ),
    module=__name__,
    title="Additive attention with structural biases",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3"
    ),
    cost=2.2,
    default_task=DefaultTask(task="transduction[rule=swap]"),
)
