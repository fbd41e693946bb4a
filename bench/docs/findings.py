"""What was found, with numbers from published runs: short for README.md, whole for a page.

`bench/docs/places.py` says how numbers are written in a text.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bench.docs.places import filled, runs_of
from reports.folder import RunFolder


class Finding(NamedTuple):
    """A point of the list in README.md, and a line of the table."""

    run: str
    """Stem of the pack."""
    short: str
    """For README.md, where means stand alone; empty where another one says enough."""
    found: str
    test: str
    mechanisms: str
    plain: str
    """What `scaled_dot` scores."""
    uniform: str
    non_neural: str
    """What a non-neural baseline scores."""


HEADS = (
    "Found",
    "Test",
    "Mechanisms",
    "`scaled_dot`",
    "Uniform attention",
    "Non-neural baseline",
    "From",
)
FINDINGS = (
    Finding(
        "flagship",
        "**In a GRU of width 256, trained until validation got no better, each of seven mechanisms "
        "is significantly above uniform attention**, by 10.6 to 13.7 BLEU in the mean, in "
        "translation of captions: "
        "`luong_local_p` {translation/luong_local_p}, `scaled_dot` {translation/scaled_dot}, "
        "`dot` {translation/dot}, uniform attention {translation/uniform}. Only `luong_local_p` is "
        "shown to differ from `scaled_dot`. In the smaller network of `translation` in "
        "`families` the largest mean is that of `bahdanau`: {families:translation/bahdanau} "
        "against {families:translation/uniform}.",
        "**In a GRU of width 256 each of seven mechanisms translates far better than uniform "
        "attention.** Of the differences from `scaled_dot` one is decided: `luong_local_p` is "
        "better. In the smaller network of `translation` in `families`, with three seeds, the "
        "largest mean is that of `bahdanau`, {families:translation/bahdanau} against "
        "{families:translation/uniform}. "
        "Two seeds are of an earlier commit and another processor than the other three.",
        "`translation`: captions of Multi30k, German to English; a recurrent network of width "
        "256, trained until validation got no better; BLEU",
        "`luong_local_p` {translation/luong_local_p}, `location_aware` "
        "{translation/location_aware}, `general` {translation/general}, `additive` "
        "{translation/additive}, `coverage_eq1` {translation/coverage_eq1}, `dot` "
        "{translation/dot}, no attention {translation/none_state}",
        "{translation/scaled_dot}",
        "{translation/uniform}",
        "{translation/nearest training caption}: the translation of the nearest training caption",
    ),
    Finding(
        "serving",
        "**On a CPU recurrences and windows decode long contexts faster than softmax attention.** "
        "With 8,192 keys in a layer `linear_attention` is {decode/linear_attention@8192} times as "
        "fast, a window of 16 keys {decode/sliding_window@8192}, one shared key head (`mqa`) "
        "{decode/mqa@8192}. With 256 keys none of 77 variants is shown to be faster (`mqa` "
        "{decode/mqa@256}, undecided).",
        "**On a CPU recurrences, windows and shared key heads decode faster than softmax "
        "attention where the context is long; with 256 keys none of 77 variants is shown to be.** "
        "There `mqa` has the greatest ratio, {decode/mqa@256}. It is undecided, because its "
        "interval reaches into twice the noise of the A/A control.",
        "decoding with 8,192 keys in the cache of one layer of 8 heads, one row, float32, one "
        "thread of an AMD EPYC; tokens per second, as a multiple of `scaled_dot`",
        "`linear_attention` {decode/linear_attention@8192}, `sliding_window` (16 keys) "
        "{decode/sliding_window@8192}, `mamba2_ssd` {decode/mamba2_ssd@8192}, "
        "`sliding_window[window=512]` {decode/sliding_window[window=512]@8192}, `gated_deltanet` "
        "{decode/gated_deltanet@8192}, `mqa` {decode/mqa@8192}, `gqa` {decode/gqa@8192}",
        "1",
        "not timed",
        "—",
    ),
    Finding(
        "serving_gpu",
        "**On an H200 only shared key heads decode one row faster, up to 32,768 keys in "
        "bfloat16**: `mqa` {decode/mqa@32768}, `gqa` {decode/gqa@32768}, `linear_attention` "
        "{decode/linear_attention@32768} (with 131,072 keys {decode/linear_attention@131072}). "
        "With 64 rows of 8,192 keys `linear_attention` is "
        "{decode[batch=64]/linear_attention@8192} times as fast and `gated_deltanet` "
        "{decode[batch=64]/gated_deltanet@8192}. Recurrences are slow there in part because of "
        "this code.",
        "**On an H200 `gqa` and `mqa` alone decode one row faster up to 32,768 keys.** With "
        "131,072 `linear_attention` does, too ({decode/linear_attention@131072}). With 64 rows of "
        "8,192 keys `linear_attention` ({decode[batch=64]/linear_attention@8192}), `gqa` "
        "({decode[batch=64]/gqa@8192}) and `gated_deltanet` "
        "({decode[batch=64]/gated_deltanet@8192}) are faster. A step of a recurrence is many small "
        "kernels in this code, which is a part of why recurrences are slow there.",
        "the same with 32,768 keys, bfloat16, on one NVIDIA H200; device time",
        "`mqa` {decode/mqa@32768}, `gqa` {decode/gqa@32768}, `linear_attention` "
        "{decode/linear_attention@32768}, `sliding_window` (16 keys) "
        "{decode/sliding_window@32768}, `mamba2_ssd` {decode/mamba2_ssd@32768}, `gated_deltanet` "
        "{decode/gated_deltanet@32768}",
        "1",
        "not timed",
        "—",
    ),
    Finding(
        "quick",
        "",
        "**Some location-based and monotonic mechanisms copy strings longer than those of "
        "training.** `raffel_monotonic` and `mocha` are not significantly different from "
        "`scaled_dot`.",
        "`transduction[rule=copy]`, recurrent networks: strings of up to "
        "{transduction[rule=copy]@trained} symbols, then of {transduction[rule=copy]@beyond}; "
        "share of symbols written before the first error",
        "`ntm_addressing` {transduction[rule=copy]/ntm_addressing}, `location_aware` "
        "{transduction[rule=copy]/location_aware}, `ssnt` {transduction[rule=copy]/ssnt}, `mma_h` "
        "{transduction[rule=copy]/mma_h}, `mocha` {transduction[rule=copy]/mocha}, "
        "`raffel_monotonic` {transduction[rule=copy]/raffel_monotonic}",
        "{transduction[rule=copy]/scaled_dot}",
        "{transduction[rule=copy]/uniform}",
        "{transduction[rule=copy]/copy the source}: the source, copied",
    ),
    Finding(
        "flagship",
        "**Some attention that moves forward, or sees where it was last, copies strings of "
        "{transduction[rule=copy]@beyond} symbols after training with up to "
        "{transduction[rule=copy]@trained}**: `ntm_addressing` "
        "{transduction[rule=copy]/ntm_addressing} of a string before its first error, `mma_h` "
        "{transduction[rule=copy]/mma_h}, `location_aware` "
        "{transduction[rule=copy]/location_aware}, `ssnt` {transduction[rule=copy]/ssnt}, but "
        "`raffel_monotonic` {transduction[rule=copy]/raffel_monotonic}, `coverage_eq1` "
        "{transduction[rule=copy]/coverage_eq1}, `scaled_dot` "
        "{transduction[rule=copy]/scaled_dot}.",
        "**`ntm_addressing`, `mma_h` and `ssnt` still do at four and eight times the length of "
        "training, `location_aware` in four of five seeds.** `raffel_monotonic` is better than "
        "`scaled_dot`, but far behind these, and `coverage_eq1` is not significantly different "
        "from `scaled_dot`. All variants have learned the lengths of training: "
        "uniform attention writes {transduction[rule=copy]/uniform|prefix_accuracy} there.",
        "The same, trained on strings of up to {transduction[rule=copy]@trained} symbols until "
        "validation got no better or for 12,000 steps; mean over strings of "
        "{transduction[rule=copy]@beyond} symbols",
        "`ntm_addressing` {transduction[rule=copy]/ntm_addressing}, `mma_h` "
        "{transduction[rule=copy]/mma_h}, `location_aware` "
        "{transduction[rule=copy]/location_aware}, `ssnt` {transduction[rule=copy]/ssnt}, "
        "`raffel_monotonic` {transduction[rule=copy]/raffel_monotonic}, `coverage_eq1` "
        "{transduction[rule=copy]/coverage_eq1}",
        "{transduction[rule=copy]/scaled_dot}",
        "{transduction[rule=copy]/uniform}",
        "{transduction[rule=copy]/copy the source}: the source, copied",
    ),
    Finding(
        "quick",
        "**Of the outputs only those that copy write unknown words**: `copynet` "
        "{oov_copy/copynet|oov_accuracy} of them, `mha_roles` {oov_copy/mha_roles|oov_accuracy}, "
        "`pointer_generator` {oov_copy/pointer_generator|oov_accuracy}, `conv_copy` "
        "{oov_copy/conv_copy|oov_accuracy}, outputs that do not copy none. (`unk_replacement` "
        "puts source words in their place after decoding, which this score does not see.) On "
        "strings longer than "
        "those of training no output is above a dictionary in every seed.",
        "**Outputs that copy write nearly all words that are not in the vocabulary; other outputs "
        "write none.** `unk_replacement` puts source words in their place after decoding, which "
        "this score does not see.",
        "`oov_copy`: share of unknown words that are written, in strings of up to "
        "{oov_copy@trained} words as in training",
        "`mha_roles` {oov_copy/mha_roles|oov_accuracy}, `copynet` {oov_copy/copynet|oov_accuracy}, "
        "`pointer_generator` {oov_copy/pointer_generator|oov_accuracy}, `conv_copy` "
        "{oov_copy/conv_copy|oov_accuracy}",
        "{oov_copy/scaled_dot|oov_accuracy}",
        "{oov_copy/uniform|oov_accuracy}",
        "—",
    ),
    Finding(
        "quick",
        "",
        "**On strings longer than those of training outputs that copy lead by less, and none is "
        "above the dictionary in every seed.** `pointer_generator` is not significantly different "
        "from `scaled_dot`. At {oov_copy@longest} words only `mha_roles` and `copynet` have a "
        "higher mean than `scaled_dot`.",
        "`oov_copy`: strings of up to {oov_copy@trained} words, then of {oov_copy@beyond}; share "
        "of words written before the first error",
        "`mha_roles` {oov_copy/mha_roles}, `copynet` {oov_copy/copynet}, `conv_copy` "
        "{oov_copy/conv_copy}, `pointer_generator` {oov_copy/pointer_generator}",
        "{oov_copy/scaled_dot}",
        "{oov_copy/uniform}",
        "{oov_copy/word for word}: word for word by a dictionary counted from training, which "
        "writes one number for all unknown words",
    ),
    Finding(
        "quick",
        "",
        "**Content alone does not count places.** At the length of training sinusoids, rotary "
        "positions, `shaw_rpr`, `transformer_xl`, `deberta` and `t5_bias`, among others, find over "
        "0.999 of the symbols; `fire`, `kerple` and `alibi` find "
        "{offset/fire|token_accuracy@trained}, {offset/kerple|token_accuracy@trained} and "
        "{offset/alibi|token_accuracy@trained}.",
        "`offset`: the symbol some places back; share of symbols, in texts of {offset@trained} "
        "symbols as in training",
        "`shaw_rpr` {offset/shaw_rpr|token_accuracy@trained}, `transformer_xl` "
        "{offset/transformer_xl|token_accuracy@trained}, `canon` "
        "{offset/canon|token_accuracy@trained}, `rope` {offset/rope|token_accuracy@trained}, "
        "`t5_bias` {offset/t5_bias|token_accuracy@trained}, `sinusoid` "
        "{offset/sinusoid|token_accuracy@trained}",
        "{offset/scaled_dot|token_accuracy@trained}",
        "{offset/uniform|token_accuracy@trained}",
        "{offset/most frequent answer}",
    ),
    Finding(
        "quick",
        "**Some relative positions count places beyond training**: in texts of {offset@longest} "
        "symbols after training with {offset@trained}, `shaw_rpr` finds "
        "{offset/shaw_rpr|token_accuracy@longest} of the symbols, `transformer_xl` "
        "{offset/transformer_xl|token_accuracy@longest}, `rope` "
        "{offset/rope|token_accuracy@longest}, `t5_bias` {offset/t5_bias|token_accuracy@longest}, "
        "`alibi` {offset/alibi|token_accuracy@longest}, `sinusoid` "
        "{offset/sinusoid|token_accuracy@longest}, no positions "
        "{offset/scaled_dot|token_accuracy@longest}.",
        "**Some relative positions count places beyond training, others less well.** `fire` has a "
        "lower mean than sinusoids.",
        "The same, in texts of {offset@longest} symbols after training with {offset@trained}",
        "`shaw_rpr` {offset/shaw_rpr|token_accuracy@longest}, `transformer_xl` "
        "{offset/transformer_xl|token_accuracy@longest}, `canon` "
        "{offset/canon|token_accuracy@longest}, `deberta` {offset/deberta|token_accuracy@longest}, "
        "`xpos` {offset/xpos|token_accuracy@longest}, `rope` {offset/rope|token_accuracy@longest}, "
        "`kerple` {offset/kerple|token_accuracy@longest}, `t5_bias` "
        "{offset/t5_bias|token_accuracy@longest}, `alibi` {offset/alibi|token_accuracy@longest}, "
        "`sinusoid` {offset/sinusoid|token_accuracy@longest}, `fire` "
        "{offset/fire|token_accuracy@longest}",
        "{offset/scaled_dot|token_accuracy@longest}",
        "{offset/uniform|token_accuracy@longest}",
        "—",
    ),
    Finding(
        "fresh_seeds",
        "**Softmax attention with forget gates (`fox`) or slopes by distance (`alibi`) goes on "
        "with patterns in texts of {induction@longest} symbols after training with up to "
        "{induction@trained}**: `fox` {induction/fox|token_accuracy@longest}, `alibi` "
        "{induction/alibi|token_accuracy@longest}, `sinusoid` "
        "{induction/sinusoid|token_accuracy@longest}, `rope` "
        "{induction/rope|token_accuracy@longest} of the symbols, no positions "
        "{induction/scaled_dot|token_accuracy@longest}.",
        "**Softmax attention with forget gates, sums of neighbors or slopes by distance repeats "
        "patterns at four times the length of training; with rotary positions and sinusoids less "
        "than half of the symbols are right.** Recurrences with forget gates (`mamba2_ssd`, "
        "`gated_deltanet`) do not.",
        "`induction`: texts of up to {induction@trained} symbols, then of {induction@longest}; "
        "share of symbols",
        "`fox_pro` {induction/fox_pro|token_accuracy@longest}, `canon` "
        "{induction/canon|token_accuracy@longest}, `fox` {induction/fox|token_accuracy@longest}, "
        "`alibi` {induction/alibi|token_accuracy@longest}, `sinusoid` "
        "{induction/sinusoid|token_accuracy@longest}, `rope` "
        "{induction/rope|token_accuracy@longest}, `mamba2_ssd` "
        "{induction/mamba2_ssd|token_accuracy@longest}, `gated_deltanet` "
        "{induction/gated_deltanet|token_accuracy@longest}",
        "{induction/scaled_dot|token_accuracy@longest}",
        "{induction/uniform|token_accuracy@longest}",
        "{induction/most frequent answer}",
    ),
    Finding(
        "modern",
        "**Beyond the length of training rotary positions can be worse than none**: in texts of "
        "{causal_copy@beyond} symbols after training with up to {causal_copy@trained}, copied by a "
        "decoder with a convolution of width 3, `rope` writes {causal_copy/rope} of the symbols, "
        "`alibi` {causal_copy/alibi}, no positions {causal_copy/nope}.",
        "**Rotary positions copy less of texts beyond the length of training than no positions at "
        "all**, beside a causal convolution of width 3. At 32 symbols both write 0.98 of them "
        "(not tested).",
        "`causal_copy`: texts of up to {causal_copy@trained} symbols, then of "
        "{causal_copy@beyond}; share of symbols",
        "`rope` {causal_copy/rope}, `nope` {causal_copy/nope}, `alibi` {causal_copy/alibi}, `fox` "
        "{causal_copy/fox}",
        "{causal_copy/nope}",
        "{causal_copy/uniform}",
        "{causal_copy/most frequent answer}",
    ),
    Finding(
        "fresh_seeds",
        "**Most recurrences, and all windows, find fewer values by their keys than softmax "
        "attention over all keys without positions**, among 15 and 24 pairs after training with "
        "6: `scaled_dot` {recall/scaled_dot}, one shared key head (`mqa`) {recall/mqa} with a "
        "state of {recall/mqa|state_bytes} bytes, "
        "`linear_attention` {recall/linear_attention} with {recall/linear_attention|state_bytes}, "
        "`gated_deltanet` {recall/gated_deltanet}, a window of 16 tokens "
        "{recall/sliding_window}.",
        "**Where there are more pairs than in training, softmax attention over all keys, without "
        "positions, still finds nearly all values; most recurrences, and all windows, find "
        "fewer.** With rotary positions it finds {recall/rope}. Bytes alone do not separate them: "
        "one shared key head (`mqa`) keeps {recall/mqa|state_bytes} bytes, `linear_attention` "
        "{recall/linear_attention|state_bytes}, `gsa` {recall/gsa|state_bytes} and `dilated` "
        "{recall/dilated|state_bytes}. Of the recurrences `dpfp` is equivalent ({recall/dpfp} with "
        "{recall/dpfp|state_bytes} bytes), and `based`, `hedgehog`, `performer` and `kda` are "
        "undecided. On the seeds of `quick` `gated_deltanet` and `gla` are undecided, too, and "
        "`hedgehog` is worse. Recurrences stand without "
        "the norm and the gate of their papers. In `modern`, with 16 pairs in training and a wider "
        "network, `linear_attention` finds {modern:recall/linear_attention} and `scaled_dot` "
        "{modern:recall/scaled_dot}. The test of that report leaves this undecided, because it "
        "pools the spread of all variants, and some of them learn in some seeds only. Each of the "
        "five seeds of `linear_attention` is lower.",
        "`recall`, one layer of width 32, trained with 6 pairs: share of values among 15 and 24 "
        "pairs",
        "`mqa` {recall/mqa}, `linear_attention` {recall/linear_attention}, `gsa` {recall/gsa}, "
        "`gated_deltanet` {recall/gated_deltanet}, `dilated` {recall/dilated}, `sliding_window` "
        "{recall/sliding_window}",
        "{recall/scaled_dot}",
        "{recall/uniform}",
        "{recall/first value read}",
    ),
    Finding(
        "modern",
        "**A delta rule follows swaps if its state matrix may have negative eigenvalues**: "
        "`deltanet[reach=2.0]` has {composition[group=s5,moves=swaps]/deltanet[reach=2.0]} of the "
        "products along sequences of {composition[group=s5,moves=swaps]@beyond} swaps, after "
        "training with {composition[group=s5,moves=swaps]@trained}, `deltanet` "
        "{composition[group=s5,moves=swaps]/deltanet}, `scaled_dot` "
        "{composition[group=s5,moves=swaps]/scaled_dot}.",
        "**A delta rule follows swaps far beyond training if its state matrix may have negative "
        "eigenvalues** (`reach=2.0`). One swap is what one step of such a rule can express.",
        "`composition[group=s5,moves=swaps]`: sequences of "
        "{composition[group=s5,moves=swaps]@trained} swaps of five things in training, then of "
        "{composition[group=s5,moves=swaps]@beyond}; share of the products at all places",
        "`deltanet[reach=2.0]` {composition[group=s5,moves=swaps]/deltanet[reach=2.0]}, "
        "`gated_deltaproduct` {composition[group=s5,moves=swaps]/gated_deltaproduct}, `deltanet` "
        "{composition[group=s5,moves=swaps]/deltanet}",
        "{composition[group=s5,moves=swaps]/scaled_dot}",
        "not trained",
        "{composition[group=s5,moves=swaps]/most frequent answer}",
    ),
    Finding(
        "modern",
        "**On a small text of words five of eight variants, those with positions or a recurrence, "
        "are better than uniform attention**, by perplexity: `gated_deltanet` "
        "{wikitext2_mini/gated_deltanet}, `rope` {wikitext2_mini/rope}, `scaled_dot` "
        "{wikitext2_mini/scaled_dot}, uniform attention {wikitext2_mini/uniform}. Only "
        "`gated_deltanet` is clearly better than trigrams "
        "({wikitext2_mini/trigram, interpolated}); in `families` `shaw_rpr` is, too "
        "({families:wikitext2_mini/shaw_rpr}).",
        "**On a small text of words five of eight variants, those with positions or a recurrence, "
        "are better than uniform attention.** Of them only `gated_deltanet` has an interval "
        "without the perplexity of trigrams. In `families`, with three seeds, `shaw_rpr` "
        "({families:wikitext2_mini/shaw_rpr}) has one, too, and `linear_attention` "
        "({families:wikitext2_mini/linear_attention}) is undecided against uniform attention "
        "({families:wikitext2_mini/uniform}). On characters (`stdlib_code`, a pipeline check) all "
        "mechanisms are better than uniform attention.",
        "`wikitext2_mini`: perplexity of words; less is better",
        "With positions or a recurrence: `gated_deltanet` {wikitext2_mini/gated_deltanet}, `rope` "
        "{wikitext2_mini/rope}, `alibi` {wikitext2_mini/alibi}. Without: `gqa` "
        "{wikitext2_mini/gqa}, `learned_sink` {wikitext2_mini/learned_sink}",
        "{wikitext2_mini/scaled_dot}",
        "{wikitext2_mini/uniform}",
        "{wikitext2_mini/trigram, interpolated}: trigrams. Of the characters of `stdlib_code` "
        "trigrams are better than every network",
    ),
)


def named_runs() -> set[str]:
    """Stems of the packs that findings take numbers from."""
    return {one.run for one in FINDINGS}.union(*(runs_of(text) for one in FINDINGS for text in one))


def findings_list(folders: Mapping[str, RunFolder]) -> str:
    """The findings as a short list in Markdown for README.md; narrow intervals are left out.

    Args:
        folders: The runs by the stems of their packs.

    Raises:
        LookupError: A run has no such number.
    """
    return "\n".join(
        f"- {filled(one.short, folders[one.run], folders, short=True)} "
        f"([{one.run}](reports/published/{one.run}/report.md))"
        for one in FINDINGS
        if one.short
    )


def findings_table(folders: Mapping[str, RunFolder]) -> str:
    """The findings as a table in Markdown for a page of `docs`.

    Args:
        folders: The runs by the stems of their packs.

    Raises:
        LookupError: A run has no such number.
    """
    rows = [HEADS, ["---"] * len(HEADS)]
    rows += [
        [
            *(filled(text, folders[one.run], folders) for text in one[2:]),
            f"[{one.run}](../reports/published/{one.run}/report.md)",
        ]
        for one in FINDINGS
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
