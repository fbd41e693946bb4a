"""Claims F: self-attention, positions and long inputs."""

from functools import partial

from bench.api.claim import Bound, Claim, Contrast, Exact, Side, register_claim
from tasks.claims import computed_kernels, computed_masks
from tasks.claims.sources import NOTES, SUMMARY

shifted = partial(Side, task="offset", metric="token_accuracy", axis="length")
inside, beyond = partial(shifted, x=24.0), partial(shifted, x=96.0)
chained = partial(Side, variant="memn2n", task="chains", metric="label_accuracy")

for one in (
    Claim(
        key="C35",
        title="Self-attention encodes context like a bidirectional LSTM, and more directly.",
        source=NOTES,
        quote="behaves similar to a Bi-LSTM in that it tries to encode information about the "
        "context … much more direct, … without being influenced by many steps inside the RNN",
        missing="Needs a task with a dependency at a chosen distance that both a bidirectional "
        "LSTM and self-attention read; offset and recall are causal here.",
    ),
    Claim(
        key="C36",
        title="Self-attention is much faster than a recurrent layer.",
        source=NOTES,
        quote="It is much faster as it is only a dot/matrix product",
        missing="Speed cells time attention alone, not a recurrent layer; needs a timed recurrent "
        "layer, and a GPU for the half about parallel hardware.",
    ),
    Claim(
        key="C37",
        title="Self-attention without positions does not know the order of its input.",
        source=SUMMARY,
        quote="self-attention cannot capture the order information of input sequences",
        exact=Exact(
            compute=computed_masks.order_of_the_source,
            bounds=(
                Bound(
                    metric="order_change",
                    title="change by the order of the source, without positions",
                    high=1e-9,
                ),
                Bound(
                    metric="sinusoid_order_change", title="the same change with sinusoids", low=1e-3
                ),
                Bound(
                    metric="causal_order_change",
                    title="the same change under a causal mask, without positions",
                    low=1e-3,
                ),
            ),
        ),
        note="Five scores. Under a causal mask the order does change the outputs, even without "
        "positions: the sentence holds for attention in both directions only.",
        priority=1,
    ),
    Claim(
        key="C38",
        title="Residual connections carry positions to higher layers.",
        source=SUMMARY,
        quote="Residual connections help propagate position information to higher layers.",
        missing="The transformer here has no switch for its residual connections, and no probe "
        "reads positions from its layers.",
    ),
    Claim(
        key="C39",
        title="Positions can be learned or fixed: in range there is no difference, beyond it both "
        "fail.",
        source=SUMMARY,
        quote="Positional embeddings can be learned or pre-fixed",
        contrasts=(
            Contrast(
                title="learned minus sinusoid in the training range, token accuracy",
                left=(inside(variant="learned"),),
                right=(inside(variant="sinusoid"),),
                expect="equal",
                margin=0.05,
            ),
            Contrast(
                title="sinusoid at four times the training length minus inside, token accuracy",
                left=(beyond(variant="sinusoid"),),
                right=(inside(variant="sinusoid"),),
                expect="lower",
                margin=0.3,
            ),
            Contrast(
                title="learned at four times the training length minus inside, token accuracy",
                left=(beyond(variant="learned"),),
                right=(inside(variant="learned"),),
                expect="lower",
                margin=0.3,
            ),
        ),
        note="Rotary and ALiBi positions are not here yet.",
        priority=3,
    ),
    Claim(
        key="C40",
        title="Clipped relative positions generalize to unseen lengths, and see only a fixed "
        "window.",
        source=SUMMARY,
        quote="which generalizes to the unseen sequence lengths during training … RPR only "
        "considers context in a fixed window size 2k+1",
        contrasts=(
            Contrast(
                title="clip 4 minus sinusoid at four times the training length, token accuracy",
                left=(beyond(variant="shaw_rpr[clip=4]"),),
                right=(beyond(variant="sinusoid"),),
                expect="higher",
                margin=0.3,
            ),
            Contrast(
                title="clip 2 minus clip 4 where the answer is 3 back, token accuracy",
                left=(inside(variant="shaw_rpr[clip=2]"),),
                right=(inside(variant="shaw_rpr[clip=4]"),),
                expect="lower",
                margin=0.3,
            ),
        ),
        exact=Exact(
            compute=computed_kernels.window_of_relative_positions,
            bounds=(
                Bound(
                    metric="weight_beyond_clip_share",
                    title="share of weight on keys beyond the clip",
                    high=0.0,
                ),
                Bound(
                    metric="parameters_over_formula_ratio",
                    title="added parameters over those of the formula",
                    low=1.0,
                    high=1.0,
                ),
            ),
        ),
        note="The second sentence says that weight beyond the clip is zero, which is computed at "
        "initialization. It is not: keys beyond the clip share one vector and are still read.",
        priority=3,
    ),
    Claim(
        key="C41",
        title="One round of attention answers one question at a time; more hops answer more.",
        source=SUMMARY,
        quote="current attention mechanism is one round, and one dimension",
        contrasts=(
            Contrast(
                title="up to three facts, three hops minus one, label accuracy",
                left=(chained(backbone="memn2n[width=32,hops=3]"),),
                right=(chained(backbone="memn2n[width=32,hops=1]"),),
                expect="higher",
                margin=0.1,
            ),
        ),
        priority=4,
    ),
    Claim(
        key="C42",
        title="Attention is not for very long sequences.",
        source=NOTES,
        quote="Don't use attention with very long sequences - especially those you want to "
        "summarize and process efficiently",
        missing="Needs lengths up to 4096 with training at each, about ten hours of this CPU or "
        "one on a GPU, and scores whose scale grows with the length, which are not here.",
    ),
    Claim(
        key="C43",
        title="Under causal attention an output depends on nothing that comes later.",
        source=SUMMARY,
        quote="the prediction output at position i only depends on the known outputs at positions "
        "less than i, regardless of the future",
        exact=Exact(
            compute=computed_masks.weight_of_the_future,
            bounds=(
                Bound(
                    metric="future_change",
                    title="largest change of earlier outputs under another future, by variant",
                    high=1e-9,
                ),
                Bound(
                    metric="causal_variants_count",
                    title="causal variants that were tried",
                    low=10.0,
                ),
            ),
        ),
        note="Every listed variant that a causal slot takes, with parameters as drawn; the "
        "certificate of each variant checks the same with more questions.",
        priority=1,
    ),
):
    register_claim(one, module=__name__)
