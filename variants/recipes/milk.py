"""Monotonic infinite lookback on additive scores, trained to wait no longer than it must.

Arivazhagan et al., 2019, "Monotonic infinite lookback attention for simultaneous machine
translation", https://arxiv.org/abs/1906.05218.

Deviations: those of the normalizer `milk`, of the loss `latency` and of the additive score; the
noise before the sigmoid has deviation 2, not 1.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "milk",
    Recipe(
        axes={"score": "additive", "normalizer": "milk[end=last,noise=2.0]", "loss": "latency"},
        main="normalizer",
    ),
    module=__name__,
    title="Monotonic infinite lookback",
    citation=Citation(text="Arivazhagan et al., 2019", url="https://arxiv.org/abs/1906.05218"),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
