"""Two directions trained jointly, with a bonus where their normalizers agree.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, on bidirectional training.

Deviations: those of the joint loss `agreement_trace` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "agreement_trace",
    Recipe(
        axes={"score": "additive"},
        main="direction",
        fixes={"direction": "both[joint=agreement_trace]"},
    ),
    module=__name__,
    title="Joint training with the trace bonus",
    citation=Citation(text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085"),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=swap]"),
)
