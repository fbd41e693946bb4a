"""Two directions trained jointly, with a penalty where their normalizers differ.

Cheng et al., 2016, "Agreement-based joint training for bidirectional attention-based neural machine
translation", https://arxiv.org/abs/1512.04650, section 3.

Deviations: those of the joint loss `agreement_l2` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "agreement_l2",
    Recipe(
        axes={"score": "additive"},
        main="direction",
        fixes={"direction": "both[joint=agreement_l2]"},
    ),
    module=__name__,
    title="Joint training with squared disagreement",
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1512.04650", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=swap]"),
)
