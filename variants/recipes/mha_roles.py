"""Multi-head attention with designated heads: some read values, the last one points at copies.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.2.2;
a head of its own for copying after Allamanis et al., 2016, https://arxiv.org/abs/1602.03001,
section 3.1; the copies are mixed in as by See et al., 2017, https://arxiv.org/abs/1704.04368.

Deviations: those of the heads `roles` and of the output `pointer_generator`. With more pointing
heads than one, the output must be told too: `head=roles[pointing=2],output=pointer_generator[
heads=2]`.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mha_roles",
    Recipe(
        axes={
            "head": "roles",
            "score": "scaled_dot",
            "output": "pointer_generator[heads=1]",
        },
        main="head",
    ),
    module=__name__,
    title="Multi-head attention with a head for copying",
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 3.1"
    ),
    cost=1.25,
    default_task=DefaultTask(task="oov_copy"),
)
