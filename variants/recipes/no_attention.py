"""Encoder-decoders without attention: the source is one fixed vector."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "none_state",
    Recipe(axes={}, main="decoder", fixes={"decoder": "none_state"}),
    module=__name__,
    about="""
    No attention (control): the source reaches the decoder only as its first state.

    Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
    https://arxiv.org/abs/1409.3215, section 2.

    Deviations: those of the decoder `none_state`; a score is named but never computed.
    """,
    title="No attention, source in the first state (control)",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("standard",),
    control="negative",
)

register_recipe(
    "none_input",
    Recipe(axes={}, fixes={"decoder": "none_input"}),
    module=__name__,
    about="""
    No attention (control): a summary of the source is part of every decoder input.

    Cho et al., 2014, "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation", https://arxiv.org/abs/1406.1078, section 2.2.

    Deviations: those of the decoder `none_input`.
    """,
    title="Fixed vector at every step",
    citation=Citation(
        text="Cho et al., 2014", url="https://arxiv.org/abs/1406.1078", where="section 2.2"
    ),
    control="negative",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)

register_recipe(
    "source_reversal",
    Recipe(
        axes={},
        main="source_order",
        fixes={"encoder": "uni_rnn", "source_order": "reversed", "decoder": "none_state"},
    ),
    module=__name__,
    about="""
    No attention, source read backwards: the first words of both sides come close to each other.

    Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
    https://arxiv.org/abs/1409.3215, section 3.3.

    Deviations: those of the decoder `none_state`; one layer of GRU where the paper has four of
    LSTM. The encoder is fixed because the order matters only to a network that reads in one
    direction.
    """,
    title="No attention, source read backwards",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 3.3"
    ),
    cost=0.7,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Sutskever et al. report it ahead of the same network that reads forwards (25.9 to 30.6 "
        "BLEU, English to French, four layers of 1,000 LSTM cells), both without attention. Here "
        "the baseline has attention, which it is not meant to beat. Against `none_state` in "
        "`rnn_seq2seq[hidden=64,embedding=32,encoder=uni_rnn]` the advantage appears after 600 "
        "updates (seeds 100 to 104: exact match 0.583 and 0.534, ahead in every seed). Claim C04 "
        "asks for a larger advantage at the longest strings, and is not met."
    ),
)
