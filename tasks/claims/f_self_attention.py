"""Claims F: self-attention, positions and long inputs."""

from functools import partial

from bench.api.claim import Bound, Claim, Contrast, Exact, Side, register_claim
from tasks.claims import computed_kernels, computed_lengths, computed_masks, computed_recurrence
from tasks.claims.six_layers import WITHOUT_RESIDUAL, in_six_layers
from tasks.claims.sources import NOTES, SUMMARY

shifted = partial(Side, task="offset", metric="token_accuracy", axis="length")
inside, beyond = partial(shifted, x=24.0), partial(shifted, x=96.0)
chained = partial(Side, variant="memn2n", task="chains", metric="label_accuracy")
paired = partial(Side, task="distant_pair", metric="token_accuracy", axis="difficulty")
attends = partial(paired, variant="sinusoid")
recurs = partial(
    paired,
    # the block above the recurrent layers mixes no tokens: each sees itself alone
    variant="sliding_window[window=1]",
    backbone="tagger[width=64,layers=1,encoder=birnn[cell=lstm]]",
)
CROWDED = "distant_pair[length=112,pairs=16]"
placed = partial(in_six_layers, probe="position_readout", metric="position_accuracy", axis="layer")
AGAIN = "tagger[width=64,layers=6,residual=false,positions_each_layer=true]"
CONSTANT_COSTS = tuple(
    Bound(metric=f"{name}_{kind}_exponent", low=-0.05, high=0.05)
    for name in computed_lengths.CONSTANT
    for kind in ("operations", "bytes")
)

for one in (
    Claim(
        key="C35",
        title="Self-attention encodes context like a bidirectional LSTM, and more directly.",
        source=NOTES,
        quote="behaves similar to a Bi-LSTM in that it tries to encode information about the "
        "context … much more direct, … without being influenced by many steps inside the RNN",
        contrasts=(
            Contrast(
                title="four pairs at distance 2, self-attention minus LSTM, token accuracy",
                left=(attends(x=2.0),),
                right=(recurs(x=2.0),),
                expect="equal",
                margin=0.05,
            ),
            Contrast(
                title="four pairs, fall from distance 2 to 64, LSTM minus self-attention",
                left=(recurs(x=2.0), attends(x=64.0)),
                right=(recurs(x=64.0), attends(x=2.0)),
                expect="higher",
                margin=0.1,
            ),
            Contrast(
                title="sixteen pairs, fall from distance 2 to 64, LSTM minus self-attention",
                left=(recurs(task=CROWDED, x=2.0), attends(task=CROWDED, x=64.0)),
                right=(recurs(task=CROWDED, x=64.0), attends(task=CROWDED, x=2.0)),
                expect="higher",
                margin=0.1,
            ),
            Contrast(
                title="sixteen pairs, self-attention at distance 64 minus at 2, token accuracy",
                left=(attends(task=CROWDED, x=64.0),),
                right=(attends(task=CROWDED, x=2.0),),
                expect="equal",
                margin=0.05,
            ),
        ),
        exact=Exact(
            compute=computed_recurrence.gradient_by_distance,
            bounds=(
                Bound(metric="recurrent_gradient_share_at_64", high=0.01),
                Bound(metric="attention_gradient_share_at_64", low=0.5, high=2.0),
            ),
        ),
        note="Two directions, one layer, equal widths, 600 updates over all distances. The tokens "
        "of pairs are marked, so that a network has to keep four symbols of eighty tokens, or "
        "sixteen of 112. Gradients are those of layers as they are drawn, over the gradient at "
        "distance 2. Sixteen pairs were added after a pilot on seed 0, in which the LSTM answered "
        "four pairs at every distance.",
    ),
    Claim(
        key="C36",
        title="Self-attention is much faster than a recurrent layer.",
        source=NOTES,
        quote="It is much faster as it is only a dot/matrix product",
        exact=Exact(
            compute=computed_recurrence.time_of_layers,
            bounds=(
                Bound(metric="lstm_time_ratio", low=2.0),
                Bound(metric="gru_time_ratio", low=2.0),
                Bound(metric="recurrent_steps_ratio", low=3.5),
                Bound(metric="attention_steps_ratio", high=1.0),
                # true of every ratio: they are shown, and bound nothing
                Bound(metric="lstm_time_ratio_beyond_the_width", low=0.0),
                Bound(metric="gru_time_ratio_beyond_the_width", low=0.0),
            ),
        ),
        note="Time of a recurrent layer over that of multi-head self-attention, forward and "
        "backward: width 256, four sequences, float32, on the processor that the environment "
        "names. Much faster is read as twice as fast, at 32 to 256 tokens. Operations of "
        "attention grow with the square of the length, so that the order should reverse where "
        "sequences are much longer than the width; ratios at 512 to 2048 tokens are shown and "
        "bound nothing. Steps are operations that wait for one another, at 128 tokens over those "
        "at 32. What a GPU makes of that is not seen here.",
    ),
    Claim(
        key="C37",
        title="Self-attention without positions does not know the order of its input.",
        source=SUMMARY,
        quote="self-attention cannot capture the order information of input sequences",
        exact=Exact(
            compute=computed_masks.order_of_the_source,
            bounds=(
                Bound(metric="order_change", high=1e-9),
                Bound(metric="sinusoid_order_change", low=1e-3),
                Bound(metric="causal_order_change", low=1e-3),
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
        contrasts=(
            *(
                Contrast(
                    title=f"places read from layer {layer} of 6, with residual minus without",
                    left=(placed(x=float(layer)),),
                    right=(placed(x=float(layer), backbone=WITHOUT_RESIDUAL),),
                    expect="higher",
                    margin=0.1,
                )
                for layer in (2, 6)
            ),
            Contrast(
                title="places read from layer 6 without residual, positions added to every layer "
                "minus to the first",
                left=(placed(x=6.0, backbone=AGAIN),),
                right=(placed(x=6.0, backbone=WITHOUT_RESIDUAL),),
                expect="higher",
                margin=0.1,
            ),
            Contrast(
                title="token accuracy with residual minus without",
                left=(in_six_layers(metric="token_accuracy"),),
                right=(in_six_layers(metric="token_accuracy", backbone=WITHOUT_RESIDUAL),),
                expect="higher",
                margin=0.1,
            ),
        ),
        note="Places are read by ridge regression from what a layer hands on, after 400 updates on "
        "a task that asks for the symbol four places before or behind. What is lost without "
        "residual connections may be the words, too; the third line tells whether positions are "
        "what is missing.",
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
                Bound(metric="weight_beyond_clip_share", high=0.0),
                Bound(metric="parameters_over_formula_ratio", low=1.0, high=1.0),
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
        exact=Exact(
            compute=computed_lengths.cost_and_weight_by_length,
            bounds=(
                Bound(metric="attention_operations_exponent", low=0.95, high=1.05),
                Bound(metric="attention_bytes_exponent", low=0.95, high=1.05),
                *CONSTANT_COSTS,
                Bound(metric="fixed_scale_weight_left_share", high=0.5),
                Bound(metric="log_scale_weight_left_share", low=0.95),
            ),
        ),
        note="About cost and weights alone. An exponent is the power of the length with which the "
        "operations of one decoded token and the bytes that are kept grow, from 256 to 4096 "
        "tokens; a window of 64, linear attention and the gated delta rule pay the same at every "
        "length. The weight is that of the key which equals the query, among independent normal "
        "ones of width 64, at 4096 keys over that at 32: it fades at a fixed scale, and not at "
        "one that grows with the logarithm of the number of keys. A trained network may choose "
        "a larger scale. What is lost of quality needs training at such lengths, about ten hours "
        "of a CPU, and was not run; what has a constant cost recalls less.",
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
                Bound(metric="future_change", high=1e-9),
                Bound(metric="causal_variants_count", low=10.0),
            ),
        ),
        note="Every listed variant that a causal slot takes, with parameters as drawn; the "
        "certificate of each variant checks the same with more questions.",
        priority=1,
    ),
):
    register_claim(one, module=__name__)
