"""Additive attention that uses what is known of word alignment: biases, or gold links."""

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
    about="""
    Structural biases: the additive score sees positions, the last weights and the summed weights.

    Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
    translation model", https://arxiv.org/abs/1601.01085, section 3.

    Deviations: those of `cohn_position`, `cohn_markov` and `cohn_local_fertility`. The paper's
    losses, `global_fertility` and the joint loss `agreement_trace`, are added as `loss=` and
    `direction=`.
    """,
    title="Additive attention with structural biases",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3"
    ),
    cost=2.2,
    default_task=DefaultTask(task="transduction[rule=swap]"),
)

register_recipe(
    "supervised_attention",
    Recipe(axes={"score": "additive", "loss": "supervised"}, main="loss"),
    module=__name__,
    about="""
    Additive attention whose weights are trained to match gold alignments.

    Liu et al., 2016, "Neural machine translation with supervised attention",
    https://arxiv.org/abs/1609.04186.

    Deviations: those of the loss `supervised` and of the additive score.
    """,
    title="Supervised attention",
    citation=Citation(text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186"),
    default_task=DefaultTask(task="transduction[rule=swap]"),
    does_not_show=(
        "Liu et al. report better alignments and, with them, better translations from Chinese "
        "to English. Alignments can be better here as well, which the metric of alignment "
        "shows. The ranking metric is about the output, and need not follow."
    ),
)
