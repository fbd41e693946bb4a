"""Monotonic multihead attention that reads one key a head (MMA-H).

Ma et al., 2020, "Monotonic multihead attention", https://arxiv.org/abs/1909.12406, sections 2.2
and 2.3.

Deviations: those of the normalizer `raffel_monotonic` and of the loss `latency`; the noise before
the sigmoid has deviation 2, not 1.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

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
    title="Monotonic multihead attention, hard",
    citation=Citation(
        text="Ma et al., 2020",
        url="https://arxiv.org/abs/1909.12406",
        where="sections 2.2 and 2.3",
    ),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
