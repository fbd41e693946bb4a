"""Attention to several sources, or to a text and an image."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "multi_source",
    Recipe(
        axes={"score": "general", "mask": "luong_local_p"},
        main="combiner",
        fixes={"combiner": "concat", "decoder": "luong"},
    ),
    module=__name__,
    about="""
    Several sources, each with its own attention; the contexts are concatenated.

    Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710.

    Deviations: those of the mask `luong_local_p` and of the decoder `luong`.
    """,
    title="Attention to each of several sources",
    citation=Citation(
        text="Zoph & Knight, 2016",
        url="https://arxiv.org/abs/1601.00710",
        where="multi-source attention",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
)

register_recipe(
    "multi_source_flat",
    Recipe(
        axes={"score": "additive"},
        main="combiner",
        fixes={"combiner": "flat", "decoder": "bahdanau"},
    ),
    module=__name__,
    about="""
    Several sources whose positions compete in one softmax.

    Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
    https://arxiv.org/abs/1704.06567.

    Deviations: those of the combiner `flat` and of the decoder `bahdanau`.
    """,
    title="One softmax over the positions of several sources",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="flat combination",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
    does_not_show=(
        "Libovický and Helcl report results near those of other ways to read two sources, for "
        "captions with their pictures (Multi30k, 29,000 of each) and for raw translations that are "
        "mended. Here its mean is higher, but the seeds do not decide the difference."
    ),
)

register_recipe(
    "multi_source_hierarchical",
    Recipe(
        axes={"score": "additive"},
        main="combiner",
        fixes={"combiner": "hierarchical", "decoder": "bahdanau"},
    ),
    module=__name__,
    about="""
    Several sources, each with its own attention, and a second attention over their contexts.

    Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
    https://arxiv.org/abs/1704.06567.

    Deviations: those of the decoder `bahdanau`.
    """,
    title="Attention over the contexts of several sources",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="hierarchical combination",
    ),
    cost=1.9,
    default_task=DefaultTask(task="two_source"),
    does_not_show=(
        "Libovický and Helcl report results near those of other ways to read two sources, for "
        "captions with their pictures (Multi30k, 29,000 of each) and for raw translations that are "
        "mended. Here its mean is higher, but the seeds do not decide the difference."
    ),
)

register_recipe(
    "multimodal_tokens",
    Recipe(
        axes={"score": "general"},
        main="encoder",
        fixes={"encoder": "multimodal", "decoder": "luong"},
    ),
    module=__name__,
    about="""
    Attention over a sentence and an image at once: visual features are further source tokens.

    Huang et al., 2016, "Attention-based multimodal neural machine translation",
    https://aclanthology.org/W16-2360.

    Deviations: those of the encoder `multimodal`, of the decoder `luong` and of the general score.
    """,
    title="Image features as source tokens",
    citation=Citation(text="Huang et al., 2016", url="https://aclanthology.org/W16-2360"),
    default_task=DefaultTask(task="scene_translation"),
    does_not_show=(
        "Huang et al. report better translations with a picture and its regions beside the words "
        "than of the words alone, on Multi30k (29,000 pictures with captions). Here the baseline "
        "reads the same words and regions, so that the two differ in their decoder and score "
        "alone, and the task is a pipeline check."
    ),
)
