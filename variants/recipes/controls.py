"""Controls and ablations of dot-product attention: each changes one part, or nothing."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "aa_control",
    Recipe(axes={"score": "scaled_dot"}, main="score"),
    module=__name__,
    about="""
    A/A control: the scaled dot product under a second name.

    No paper. A comparison with `scaled_dot` shows how far two equal variants differ by chance, and
    how often a test calls that difference significant.

    Deviations: none.
    """,
    title="Scaled dot product under another name (control)",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("quick", "standard"),
    control="aa",
)

register_recipe(
    "raw_scores",
    Recipe(axes={"normalizer": "none"}, main="normalizer"),
    module=__name__,
    about="""
    Raw scores as weights (control): dot-product attention without any normalization.

    No paper: this is the linear control. The gain of `scaled_dot` over it is what softmax is good
    for.

    Deviations: those of the normalizer `none`.
    """,
    title="Raw scores as weights (control)",
    default_task=DefaultTask(task="recall"),
    control="negative",
)

register_recipe(
    "none_position",
    Recipe(axes={"position": "none", "score": "scaled_dot"}),
    module=__name__,
    about="""
    No positions: an ablation that shows what the order of the sequence is worth.

    Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, without
    its section 3.5. Under causal self-attention the number of visible keys still differs by
    position.

    Deviations: none.
    """,
    title="No positions",
    citation=Citation(
        text="Vaswani et al., 2017",
        url="https://arxiv.org/abs/1706.03762",
        where="without section 3.5",
    ),
    default_task=DefaultTask(task="offset"),
    does_not_show=(
        "Vaswani et al. add positions because attention alone knows no order, so that no advantage "
        "of leaving them out is claimed. Here the baseline has no positions either, and the two "
        "are one network."
    ),
)

register_recipe(
    "max_readout",
    Recipe(axes={"readout": "max"}, main="readout"),
    module=__name__,
    about="""
    Arg-max value: dot-product attention weighs all keys and reads only the heaviest.

    Bengio, Leonard & Courville, 2013, "Estimating or propagating gradients through stochastic
    neurons for conditional computation", https://arxiv.org/abs/1308.3432 (the straight-through
    gradient).

    Deviations: those of the readout `max`.
    """,
    title="Value of the heaviest key alone",
    citation=Citation(text="Bengio et al., 2013", url="https://arxiv.org/abs/1308.3432"),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Bengio et al. write about gradients through choices and report nothing about attention, "
        "so that no advantage is claimed. Here the baseline recalls nearly every pair, which "
        "leaves no room above it."
    ),
    cost=1.1,
)
