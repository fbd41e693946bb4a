"""What was found, with numbers from published runs: short for README.md, whole for a page.

A number stands as `{task/variant|metric@length}`: of a variant or a non-neural baseline on a task,
by the metric that ranks if none is named, on inputs of one length if one is named. `{decode/…@n}`
is how many times as fast as the baseline a variant decodes with n keys in the cache of a layer.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from reports.folder import RunFolder
from reports.markdown import escape
from reports.numbers import Seen, plain, with_interval
from reports.ranked_table.comparison import Comparison
from reports.sections.timed_slots import DECODE, main_place, places_by_length, timed_slots
from results.statistics import t_interval

_PLACE = re.compile(r"\{([^{}]+)\/([^{}\/|@]+)\|?([^{}@]*)@?([^{}]*)\}")
_INTERVAL = re.compile(
    r"([\d.,]*\d) (± ([\d.,]*\d)|\\?[(\[]([\d.,]*\d)(?:–|, )([\d.,]*\d)\\?[)\]])"
)
"""A mean and its interval, or its extremes."""
WIDE, WIDE_SHARE = 0.1, 1 / 6
"""Half a width that is told in the short list: more than this, and than this share of the mean."""
DECODING = "decode"
"""What stands in the place of a task for the speed of decoding."""


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
        "**Attention of each kind is worth 10 BLEU and more** in translation of captions. "
        "`luong_local_p` {translation/luong_local_p}, `scaled_dot` {translation/scaled_dot}, "
        "`dot` {translation/dot}, uniform attention {translation/uniform}. No other kind is shown "
        "to differ from `scaled_dot`.",
        "**Each of seven mechanisms translates far better than uniform attention.** Of the "
        "differences from `scaled_dot` one is decided: `luong_local_p` is better. Two seeds are "
        "of an earlier commit and another processor than the other three.",
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
        "{decode/mqa@8192}. With 256 keys nothing is faster.",
        "**On a CPU recurrences, windows and shared key heads decode faster than softmax "
        "attention where the context is long; with 256 keys none of 77 variants is.**",
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
        "**On an H200 only shared key heads did**, up to 32,768 keys in bfloat16: `mqa` "
        "{decode/mqa@32768}, `gqa` {decode/gqa@32768}, `linear_attention` "
        "{decode/linear_attention@32768} (with 131,072 keys "
        "{decode/linear_attention@131072}). Recurrences are slow there in part because of this "
        "code.",
        "**On an H200 `gqa` and `mqa` alone decode faster up to 32,768 keys.** With 131,072 "
        "`linear_attention` does, too ({decode/linear_attention@131072}). A step of a recurrence "
        "is many small kernels in this code, which is a part of why recurrences are slow there.",
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
        "`transduction[rule=copy]`, recurrent networks: strings of up to 8 symbols, then of 10 "
        "and 12; share of symbols written before the first error",
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
        "**Attention that moves forward, or sees where it was last, copies strings four and eight "
        "times as long as in training**: `ntm_addressing` "
        "{transduction[rule=copy]/ntm_addressing} of a string before its first error, `mma_h` "
        "{transduction[rule=copy]/mma_h}, `location_aware` "
        "{transduction[rule=copy]/location_aware}, `ssnt` {transduction[rule=copy]/ssnt}, "
        "`scaled_dot` {transduction[rule=copy]/scaled_dot}.",
        "**`ntm_addressing`, `mma_h` and `ssnt` still do at four and eight times the length of "
        "training, `location_aware` in four of five seeds.** `raffel_monotonic` is better than "
        "`scaled_dot`, but far behind these. All variants have learned the lengths of training: "
        "uniform attention writes {transduction[rule=copy]/uniform|prefix_accuracy} there.",
        "The same, trained on strings of up to 8 symbols until validation got no better or for "
        "12,000 steps; mean over strings of 32 and 64 symbols",
        "`ntm_addressing` {transduction[rule=copy]/ntm_addressing}, `mma_h` "
        "{transduction[rule=copy]/mma_h}, `location_aware` "
        "{transduction[rule=copy]/location_aware}, `ssnt` {transduction[rule=copy]/ssnt}, "
        "`raffel_monotonic` {transduction[rule=copy]/raffel_monotonic}",
        "{transduction[rule=copy]/scaled_dot}",
        "{transduction[rule=copy]/uniform}",
        "{transduction[rule=copy]/copy the source}: the source, copied",
    ),
    Finding(
        "quick",
        "**Unknown words are written only by outputs that copy**: `copynet` "
        "{oov_copy/copynet|oov_accuracy} of them, `pointer_generator` "
        "{oov_copy/pointer_generator|oov_accuracy}, all others none. On strings longer than those "
        "of training no output is above a dictionary in every seed.",
        "**Outputs that copy write nearly all words that are not in the vocabulary; without "
        "copying none is written.** On strings longer than those of training they lead by less, "
        "and none is above the dictionary in every seed. At 8 words only `mha_roles` and "
        "`copynet` have a higher mean than `scaled_dot`.",
        "`oov_copy`: share of unknown words that are written, in strings of up to 6 words as in "
        "training; then the share of words written before the first error, in strings of 7 and 8",
        "`mha_roles` {oov_copy/mha_roles|oov_accuracy} and {oov_copy/mha_roles}, `copynet` "
        "{oov_copy/copynet|oov_accuracy} and {oov_copy/copynet}, `conv_copy` "
        "{oov_copy/conv_copy|oov_accuracy} and {oov_copy/conv_copy}, `pointer_generator` "
        "{oov_copy/pointer_generator|oov_accuracy} and {oov_copy/pointer_generator} (the second "
        "undecided)",
        "{oov_copy/scaled_dot|oov_accuracy} and {oov_copy/scaled_dot}",
        "{oov_copy/uniform|oov_accuracy} and {oov_copy/uniform}",
        "{oov_copy/word for word} of longer strings: word for word by a dictionary counted from "
        "training, which writes one number for all unknown words",
    ),
    Finding(
        "quick",
        "**Relative positions count places beyond training**, here at four times its length: "
        "`shaw_rpr` {offset/shaw_rpr|token_accuracy@96}, `rope` {offset/rope|token_accuracy@96}, "
        "`sinusoid` {offset/sinusoid|token_accuracy@96}, no positions "
        "{offset/scaled_dot|token_accuracy@96} of the symbols.",
        "**Content alone does not count places.** Sinusoids and rotary positions count as far as "
        "training went, some others farther.",
        "`offset`: the symbol some places back; share of symbols, in texts of 24 symbols and of 96",
        "`shaw_rpr` {offset/shaw_rpr|token_accuracy@24} and {offset/shaw_rpr|token_accuracy@96}, "
        "`transformer_xl` {offset/transformer_xl|token_accuracy@24} and "
        "{offset/transformer_xl|token_accuracy@96}, `canon` {offset/canon|token_accuracy@24} and "
        "{offset/canon|token_accuracy@96}, `rope` {offset/rope|token_accuracy@24} and "
        "{offset/rope|token_accuracy@96}, `t5_bias` {offset/t5_bias|token_accuracy@24} and "
        "{offset/t5_bias|token_accuracy@96}, `sinusoid` {offset/sinusoid|token_accuracy@24} and "
        "{offset/sinusoid|token_accuracy@96}",
        "{offset/scaled_dot|token_accuracy@24} and {offset/scaled_dot|token_accuracy@96}",
        "{offset/uniform|token_accuracy@24} and {offset/uniform|token_accuracy@96}",
        "{offset/most frequent answer} of 24 symbols",
    ),
    Finding(
        "fresh_seeds",
        "**Forget gates and slopes by distance go on with patterns at four times the length of "
        "training**: `fox` {induction/fox|token_accuracy@128}, `alibi` "
        "{induction/alibi|token_accuracy@128}, `sinusoid` "
        "{induction/sinusoid|token_accuracy@128}, `rope` {induction/rope|token_accuracy@128} of "
        "the symbols, no positions {induction/scaled_dot|token_accuracy@128}.",
        "**Forget gates, sums of neighbors and slopes by distance repeat patterns at four times "
        "the length of training; with rotary positions and sinusoids less than half of the "
        "symbols are right.**",
        "`induction`: texts of up to 32 symbols, then of 128; share of symbols",
        "`fox_pro` {induction/fox_pro|token_accuracy@128}, `canon` "
        "{induction/canon|token_accuracy@128}, `fox` {induction/fox|token_accuracy@128}, `alibi` "
        "{induction/alibi|token_accuracy@128}, `rope` {induction/rope|token_accuracy@128}, "
        "`sinusoid` {induction/sinusoid|token_accuracy@128}",
        "{induction/scaled_dot|token_accuracy@128}",
        "{induction/uniform|token_accuracy@128}",
        "{induction/most frequent answer}",
    ),
    Finding(
        "modern",
        "**Rotary positions can be worse than none**: copying long texts in a decoder with a "
        "convolution of width 3, `rope` writes {causal_copy/rope} of the symbols, `alibi` "
        "{causal_copy/alibi}, no positions {causal_copy/nope}.",
        "**Rotary positions copy less of long texts than no positions at all**, beside a causal "
        "convolution of width 3.",
        "`causal_copy`: texts of up to 32 symbols, then of 80 and 128; share of symbols",
        "`rope` {causal_copy/rope}, `nope` {causal_copy/nope}, `alibi` {causal_copy/alibi}, `fox` "
        "{causal_copy/fox}",
        "{causal_copy/nope}",
        "{causal_copy/uniform}",
        "{causal_copy/most frequent answer}",
    ),
    Finding(
        "fresh_seeds",
        "**Small states find fewer values by their keys**, among 20 and 32 pairs after training "
        "with 8: `scaled_dot` {recall/scaled_dot}, `linear_attention` {recall/linear_attention}, "
        "`gated_deltanet` {recall/gated_deltanet}, a window of 16 tokens {recall/sliding_window}. "
        "In a wider network `linear_attention` is not significantly worse.",
        "**Where there are more pairs than in training, softmax attention still finds nearly all "
        "values; small states and windows find fewer.** `gated_deltanet` is undecided here: its "
        "seeds differ by 0.5. On the seeds of `quick` it is worse. Recurrences stand without the "
        "norm and the gate of their papers, so the size of the state is not the only difference. "
        "In `modern`, with 16 pairs in training and a wider network, `linear_attention` is not "
        "significantly worse.",
        "`recall`, one layer of width 32, trained with 8 pairs: share of values among 20 and 32 "
        "pairs",
        "`linear_attention` {recall/linear_attention}, `gated_deltanet` {recall/gated_deltanet}, "
        "`sliding_window` {recall/sliding_window}",
        "{recall/scaled_dot}",
        "{recall/uniform}",
        "{recall/first value read}",
    ),
    Finding(
        "modern",
        "**A delta rule follows swaps if its state matrix may have negative eigenvalues**: "
        "`deltanet[reach=2.0]` {composition[group=s5,moves=swaps]/deltanet[reach=2.0]} of "
        "products four times as long as in training, `deltanet` "
        "{composition[group=s5,moves=swaps]/deltanet}, `scaled_dot` "
        "{composition[group=s5,moves=swaps]/scaled_dot}.",
        "**A delta rule follows swaps far beyond training if its state matrix may have negative "
        "eigenvalues** (`reach=2.0`). One swap is what one step of such a rule can express.",
        "`composition[group=s5,moves=swaps]`: products of up to 12 swaps of five things, then of "
        "up to 48; share of products",
        "`deltanet[reach=2.0]` {composition[group=s5,moves=swaps]/deltanet[reach=2.0]}, "
        "`gated_deltaproduct` {composition[group=s5,moves=swaps]/gated_deltaproduct}, `deltanet` "
        "{composition[group=s5,moves=swaps]/deltanet}",
        "{composition[group=s5,moves=swaps]/scaled_dot}",
        "not trained",
        "{composition[group=s5,moves=swaps]/most frequent answer}",
    ),
    Finding(
        "modern",
        "**On a small text of words, mechanisms with positions or a recurrence are better than "
        "uniform attention**, by perplexity: `gated_deltanet` {wikitext2_mini/gated_deltanet}, "
        "`rope` {wikitext2_mini/rope}, `scaled_dot` {wikitext2_mini/scaled_dot}, uniform "
        "attention {wikitext2_mini/uniform}. Only `gated_deltanet` is clearly better than "
        "trigrams ({wikitext2_mini/trigram, interpolated}).",
        "**On a small text of words only mechanisms with positions or a recurrence are better "
        "than uniform attention.** Of them only `gated_deltanet` has an interval without the "
        "perplexity of trigrams. On characters (`stdlib_code`, a pipeline check) all mechanisms "
        "are better than uniform attention.",
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


def findings_list(folders: Mapping[str, RunFolder]) -> str:
    """The findings as a short list in Markdown for README.md; narrow intervals are left out.

    Args:
        folders: The runs by the stems of their packs.

    Raises:
        LookupError: A run has no such number.
    """
    return "\n".join(
        f"- {without_narrow_intervals(filled(one.short, folders[one.run]))} "
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
            *(filled(text, folders[one.run]) for text in one[2:]),
            f"[{one.run}](../reports/published/{one.run}/report.md)",
        ]
        for one in FINDINGS
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def filled(text: str, folder: RunFolder) -> str:
    """A text with the numbers of a run in their places."""
    return _PLACE.sub(lambda match: number(folder, *match.groups()), text)


def without_narrow_intervals(text: str) -> str:
    """A text whose means have three digits and stand alone, but where seeds differ by much.

    >>> without_narrow_intervals("0.923 ± 0.015, 0.883 (0.43–1.00), 35.33 ± 0.71")
    '0.923, 0.883 (0.43–1.00), 35.3'
    """

    def told(match: re.Match[str]) -> str:
        value, half, low, high = (
            float(one.replace(",", "")) if one else 0.0 for one in match.group(1, 3, 4, 5)
        )
        wide = max(half, (high - low) / 2) > max(WIDE, WIDE_SHARE * abs(value))
        return match.group() if wide else plain(value)

    return _INTERVAL.sub(told, text)


def number(folder: RunFolder, task: str, name: str, metric: str = "", length: str = "") -> str:
    """The score of a variant, or of a non-neural baseline, on a task.

    Args:
        folder: The run.
        task: Label of the task.
        name: Label of the variant, or name of the baseline.
        metric: By which it is scored; that which ranks if empty.
        length: Of the inputs; the whole test if empty.

    Raises:
        LookupError: The run has no such number.
    """
    if task == DECODING:
        return escape(_speed(folder, name, float(length)))
    known = folder.catalog
    # the network in which most variants stand, where there are several
    for comparison in sorted(folder.comparisons, key=lambda one: -len(one.means)):
        if known.task_label(comparison.task) != task:
            continue
        here = [one for one in comparison.means if known.label(one) == name]
        told = replace(comparison, metric=metric) if metric else comparison
        if here and length:
            return escape(_at(told, here[0], float(length)))
        if here and here[0] in told.means:
            return escape(told.short_score(here[0]))
        if name in comparison.without:
            return escape(plain(fmean(comparison.without[name].values())))
    wanted = f"{name} on {task} {metric} {length}".strip()
    raise LookupError(f"README.md: {folder.name} has no score of {wanted}")


def _at(comparison: Comparison, variant: str, length: float) -> str:
    """The score on inputs of one length."""
    by_seed = comparison.stored.parts(comparison.metric, "length").get((variant, length))
    if by_seed is None:
        raise LookupError(f"README.md: no inputs of length {length:g} for {variant}")
    mean = t_interval([*by_seed.values()])
    return with_interval(
        mean.estimate,
        mean.low,
        mean.high,
        limits=comparison.ranked_by.limits,
        seen=Seen.of(by_seed.values())._replace(seeds=0),
    )


def _speed(folder: RunFolder, variant: str, keys: float) -> str:
    """How many times as fast as the baseline a variant decodes, in the main table of a run."""
    slots = timed_slots(folder)
    main = main_place(slots)
    lines = slots.lines[places_by_length(main, slots)[keys]] if main else {}
    for name, line in lines.items():
        if folder.catalog.label(name) == variant:
            ratio = line[DECODE]
            return with_interval(ratio["ratio"], ratio["ratio_low"], ratio["ratio_high"])
    raise LookupError(f"README.md: {folder.name} has no speed of {variant} with {keys:g} keys")
