"""Multi-query attention."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "mqa",
    Recipe(axes={"head": "gqa[kv_heads=1]", "score": "scaled_dot"}, main="head"),
    module=__name__,
    about="""
    Multi-query attention: all query heads share one head of keys and values.

    Shazeer, 2019, "Fast transformer decoding: one write-head is all you need",
    https://arxiv.org/abs/1911.02150, section 3.

    Deviations: those of the heads `gqa`.
    """,
    title="Multi-query attention (MQA)",
    citation=Citation(
        text="Shazeer, 2019", url="https://arxiv.org/abs/1911.02150", where="section 3"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Shazeer reports much faster decoding at a quality slightly below that of one key and "
        "value a head, and no gain of quality, from English to German (WMT 2014) with 6 layers of "
        "width 1024 and 8 heads. The score of this task does not count the time of decoding."
    ),
)
