"""Multi-head attention."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mha",
    Recipe(axes={"head": "multi", "score": "scaled_dot"}, main="head"),
    module=__name__,
    about="""
    Multi-head attention: several scaled dot products of projected states side by side.

    Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section
    3.2.2.

    Deviations: none.
    """,
    title="Multi-head attention",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.2.2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Vaswani et al. report 0.9 BLEU less for one head than for the best number of them, from "
        "English to German (4.5 million pairs of sentences). Here the baseline stands in the same "
        "heads, and the two are one network."
    ),
)

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
    about="""
    Multi-head attention with designated heads: most read values, the last one points at words to
    copy.

    Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section
    3.2.2; a separate head for copying after Allamanis et al., 2016,
    https://arxiv.org/abs/1602.03001, section 3.1; copies are mixed into the output as by See et
    al., 2017, https://arxiv.org/abs/1704.04368.

    Deviations: those of the heads `roles` and of the output `pointer_generator`. Set the number of
    pointing heads in both: `head=roles[pointing=2],output=pointer_generator[heads=2]`.
    """,
    title="Multi-head attention with a head for copying",
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 3.1"
    ),
    cost=1.25,
    default_task=DefaultTask(task="oov_copy"),
)
