"""Additive attention whose weights are used by the decoding search; training is unchanged."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "fertility_penalty",
    Recipe(
        axes={"score": "additive"}, main="search", fixes={"search": "beam[coverage_penalty=0.2]"}
    ),
    module=__name__,
    about="""
    Additive attention, decoded by a beam that penalizes source words left unread.

    Wu et al., 2016, "Google's neural machine translation system",
    https://arxiv.org/abs/1609.08144, section 7, equation 14: the coverage penalty, here with beta
    = 0.2 and alpha = 0.6.

    Deviations: those of the search `beam` and of the additive score.
    """,
    title="Additive attention, beam with a coverage penalty",
    citation=Citation(
        text="Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
    default_task=DefaultTask(task="transduction[rule=copy,decode=true]"),
    does_not_show=(
        "Wu et al. report gains of translations by a network with 8 layers a side, trained on the "
        "corpora of WMT 2014 (36 million pairs of English and French). Here strings are longer "
        "than those of training, and the beam chooses among strings whose attention has lost its "
        "place."
    ),
)

register_recipe(
    "unk_replacement",
    Recipe(axes={"score": "additive"}, main="search", fixes={"search": "greedy[replace_unk=true]"}),
    module=__name__,
    about="""
    Additive attention that replaces an unknown output word by the source word it attended to most.

    Luong, Pham & Manning, 2015, "Effective approaches to attention-based neural machine
    translation", https://arxiv.org/abs/1508.04025, section 4, after Luong et al., 2015,
    https://arxiv.org/abs/1410.8206.

    Deviations: those of the search `greedy` and of the additive score.
    """,
    title="Additive attention, unknown words replaced",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 4"
    ),
    default_task=DefaultTask(task="oov_copy[decode=true]"),
    does_not_show=(
        "Luong et al. report 1.9 BLEU more from English to German (20.9 and 19.0), with "
        "vocabularies of 50,000 words. It is significantly better on `aeslc` and `lead_copy` of "
        "`families`."
    ),
)
