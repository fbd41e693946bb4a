"""Attention in an encoder-decoder: a score, and the decoder that its paper puts around it."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "bahdanau",
    Recipe(axes={"score": "additive"}, main="score", fixes={"decoder": "bahdanau"}),
    module=__name__,
    about="""
    Attention between decoder steps: the previous state is the query, the context feeds the next
    state.

    Bahdanau et al., 2015, "Neural machine translation by jointly learning to align and translate",
    https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.1.2.

    Deviations: those of the additive score and of the decoder `bahdanau`.
    """,
    title="Attention between decoder steps, additive score",
    citation=Citation(
        text="Bahdanau et al., 2015",
        url="https://arxiv.org/abs/1409.0473",
        where="section 3.1, appendix A.1.2",
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("standard",),
)

register_recipe(
    "luong_global",
    Recipe(axes={"score": "general"}, main="decoder", fixes={"decoder": "luong"}),
    module=__name__,
    about="""
    Global attention after the decoder step: the context joins the output layer.

    Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
    https://arxiv.org/abs/1508.04025, section 3.1; `input_feeding` is section 3.3.

    Deviations: those of the general score and of the decoder `luong`.
    """,
    title="Global attention after the decoder step",
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="sections 3.1 and 3.3",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("standard",),
)

register_recipe(
    "luong_input_feeding",
    Recipe(
        axes={"score": "general"}, main="decoder", fixes={"decoder": "luong[input_feeding=true]"}
    ),
    module=__name__,
    about="""
    Luong attention with input feeding: the last attentional state is a further input of the
    decoder.

    Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
    https://arxiv.org/abs/1508.04025, section 3.3.

    Deviations: those of the general score and of the decoder `luong`.
    """,
    title="Global attention with input feeding",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)

register_recipe(
    "image_attention",
    Recipe(
        axes={"score": "additive", "loss": "doubly_stochastic"},
        main="decoder",
        fixes={"decoder": "gated"},
    ),
    module=__name__,
    about="""
    Soft attention of image captioning: additive score, gated context, deep output layer.

    Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual
    attention", https://arxiv.org/abs/1502.03044, section 4.2.

    Deviations: those of the decoder `gated`, of the loss `doubly_stochastic` and of the additive
    score. Keys are the states of the backbone's encoder, where the paper has 196 features of an
    image. With `encoder=embed` the keys carry no order, as in the paper.
    """,
    title="Soft attention with a context gate",
    citation=Citation(
        text="Xu et al., 2015", url="https://arxiv.org/abs/1502.03044", where="section 4.2"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)

register_recipe(
    "las",
    Recipe(
        axes={"score": "mlp_dot"},
        main="decoder",
        fixes={"encoder": "pyramid[layers=1]", "decoder": "las"},
    ),
    module=__name__,
    about="""
    Listen, attend and spell: a pyramid encodes, and the product of two perceptrons is the score.

    Chan, Jaitly, Le & Vinyals, 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211.

    Deviations: those of the encoder `pyramid`, the decoder `las` and the score `mlp_dot`. The
    length is halved once, where the paper halves it three times, because sources of the bench are
    words and not frames of ten milliseconds.
    """,
    title="Listen, attend and spell",
    citation=Citation(
        text="Chan et al., 2016", url="https://arxiv.org/abs/1508.01211", where="section 3"
    ),
    cost=3.4,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Chan et al. report 14.1% wrong words in Google voice search, and 10.3% with a language "
        "model, after training on 2,000 hours: halving shortens recordings of hundreds of frames, "
        "which are much alike, until attention can be learned. Sources here are short strings of "
        "words. Halving gains nothing there and puts two words into one state, which makes each "
        "harder to find."
    ),
)

register_recipe(
    "gnmt",
    Recipe(axes={"score": "additive"}, main="decoder", fixes={"decoder": "gnmt"}),
    module=__name__,
    about="""
    Attention of a deep decoder: its lowest layer asks, and all layers above read the context.

    Wu et al., 2016, "Google's neural machine translation system: bridging the gap between human and
    machine translation", https://arxiv.org/abs/1609.08144, section 3, equation 4.

    Deviations: those of the decoder `gnmt` and of the additive score. The encoder is the
    backbone's, where the paper has one bidirectional layer and seven forward ones above it.
    """,
    title="Deep decoder whose lowest layer asks (GNMT)",
    citation=Citation(
        text="Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 3"
    ),
    cost=2.5,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Wu et al. ask with the lowest of 8 layers so that the others can run on GPUs of their own "
        "beside each other, which saves time of training. At one or two layers on one machine "
        "nothing of that is seen."
    ),
)

register_recipe(
    "lstmn_decoder",
    Recipe(axes={"score": "additive"}, main="decoder", fixes={"decoder": "lstmn"}),
    module=__name__,
    about="""
    Intra-attention in the decoder: it attends to its own earlier states and to the source.

    Cheng et al., 2016, "Long short-term memory-networks for machine reading",
    https://arxiv.org/abs/1601.06733, section 3.3.

    Deviations: those of the decoder `lstmn` and of the additive score; the encoder is the
    backbone's.
    """,
    title="Decoder with a memory tape (intra-attention)",
    citation=Citation(
        text="Cheng et al., 2016", url="https://arxiv.org/abs/1601.06733", where="section 3.3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
