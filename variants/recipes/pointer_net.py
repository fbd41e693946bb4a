"""Pointer network: additive attention whose weights are the output distribution.

Vinyals, Fortunato & Jaitly, 2015, "Pointer networks", https://arxiv.org/abs/1506.03134,
section 2.3.

Deviations: those of the output `pointer_net` and of the additive score.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "pointer_net",
    Recipe(axes={"score": "additive", "output": "pointer_net"}, main="output"),
    module=__name__,
    title="Pointer network",
    citation=Citation(
        text="Vinyals et al., 2015", url="https://arxiv.org/abs/1506.03134", where="section 2.3"
    ),
    cost=1.1,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
