"""Combinations that are known for their positions."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "nope",
    Recipe(axes={"position": "none", "score": "scaled_dot"}),
    module=__name__,
    about="""
    NoPE: causal self-attention without any positions, which can still tell how many keys it sees.

    Kazemnejad et al., 2023, "The impact of positional encoding on length generalization in
    transformers", https://arxiv.org/abs/2305.19466, section 3 and theorems 1 and 2.

    Deviations: none under causal self-attention. In other places, and as an ablation, it is
    `none_position`.
    """,
    title="No positions under causality (NoPE)",
    citation=Citation(
        text="Kazemnejad et al., 2023",
        url="https://arxiv.org/abs/2305.19466",
        where="section 3, theorems 1 and 2",
    ),
    default_task=DefaultTask(task="offset"),
    does_not_show=(
        "Kazemnejad et al. report that decoders without positions generalize to longer inputs "
        "better than those with positions, on small reasoning tasks (up to 20 items in training, "
        "up to 40 in tests) with 107 million parameters. The baseline of causal tasks has no "
        "positions here, so that both are the same."
    ),
)
