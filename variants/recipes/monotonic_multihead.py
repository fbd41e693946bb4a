"""Monotonic multihead attention: every head walks through the source by itself."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mma",
    Recipe(
        axes={
            "head": "multi",
            "score": "scaled_dot",
            "normalizer": "milk[chunk=general,end=last,noise=2.0]",
            "loss": "latency[heads=leading]",
        },
        main="normalizer",
    ),
    module=__name__,
    about="""
    Monotonic multihead attention with infinite lookback (MMA-IL): every head walks by itself.

    Ma et al., 2020, "Monotonic multihead attention", https://arxiv.org/abs/1909.12406, section
    2.2.

    Deviations: those of the normalizer `milk` and of the loss `latency`. The second energy is a
    bilinear form of the queries and keys of the first, where the paper projects the states again.
    The noise before the sigmoid has standard deviation 2, not 1.
    """,
    title="Monotonic multihead attention, infinite lookback",
    citation=Citation(
        text="Ma et al., 2020", url="https://arxiv.org/abs/1909.12406", where="section 2.2"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)

register_recipe(
    "mma_h",
    Recipe(
        axes={
            "head": "multi",
            "score": "scaled_dot",
            "normalizer": "raffel_monotonic[end=last,noise=2.0]",
            "loss": "latency[heads=leading,variance=0.1,weight=0.0]",
        },
        main="normalizer",
    ),
    module=__name__,
    about="""
    Monotonic multihead attention that reads one key per head (MMA-H).

    Ma et al., 2020, "Monotonic multihead attention", https://arxiv.org/abs/1909.12406, sections
    2.2 and 2.3.

    Deviations: those of the normalizer `raffel_monotonic` and of the loss `latency`; the noise
    before the sigmoid has standard deviation 2, not 1.
    """,
    title="Monotonic multihead attention, hard",
    citation=Citation(
        text="Ma et al., 2020",
        url="https://arxiv.org/abs/1909.12406",
        where="sections 2.2 and 2.3",
    ),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
