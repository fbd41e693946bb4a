"""What the README says that was found: a line for each finding, its numbers from published runs.

A number stands as `{task/variant|metric@length}`: of a variant or a non-neural baseline on a task,
by the metric that ranks if none is named, on inputs of one length if one is named.
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
from results.statistics import t_interval

_PLACE = re.compile(r"\{([^{}]+)\/([^{}\/|@]+)\|?([^{}@]*)@?([^{}]*)\}")


class Finding(NamedTuple):
    """A line of the table."""

    run: str
    """Stem of the pack."""
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
)
FINDINGS = (
    Finding(
        "quick",
        "**Outputs that copy write nearly all words that are not in the vocabulary; without "
        "copying none is written.** On strings longer than those of training they lead by less, "
        "and none is above the dictionary in every seed. At 8 words only `mha_roles` and `copynet` "
        "have a higher mean than `scaled_dot`.",
        "`oov_copy`: share of unknown words that are written, in strings of up to 6 words as in "
        "training; then the share of words written before the first error, in strings of 7 and 8",
        "`mha_roles` {oov_copy/mha_roles|oov_accuracy} and {oov_copy/mha_roles}, `copynet` "
        "{oov_copy/copynet|oov_accuracy} and {oov_copy/copynet}, `conv_copy` "
        "{oov_copy/conv_copy|oov_accuracy} and {oov_copy/conv_copy}, `pointer_generator` "
        "{oov_copy/pointer_generator|oov_accuracy} and {oov_copy/pointer_generator} (the second "
        "undecided)",
        "{oov_copy/scaled_dot|oov_accuracy} and {oov_copy/scaled_dot}",
        "{oov_copy/uniform|oov_accuracy} and {oov_copy/uniform}",
        "{oov_copy/word for word} of longer strings: a dictionary counted from training, which "
        "cannot write unknown words",
    ),
    Finding(
        "quick",
        "**Content alone does not count places.** Sinusoids and rotary positions count as far as "
        "training went, some others farther.",
        "`offset`: the symbol some places back; share of symbols, in texts of 24 symbols and of 96",
        "`shaw_rpr` {offset/shaw_rpr|token_accuracy@24} and "
        "{offset/shaw_rpr|token_accuracy@96}, `transformer_xl` "
        "{offset/transformer_xl|token_accuracy@24} and "
        "{offset/transformer_xl|token_accuracy@96}, `canon` {offset/canon|token_accuracy@24} "
        "and {offset/canon|token_accuracy@96}, `rope` {offset/rope|token_accuracy@24} and "
        "{offset/rope|token_accuracy@96}, `t5_bias` {offset/t5_bias|token_accuracy@24} and "
        "{offset/t5_bias|token_accuracy@96}, `sinusoid` {offset/sinusoid|token_accuracy@24} and"
        " {offset/sinusoid|token_accuracy@96}",
        "{offset/scaled_dot|token_accuracy@24} and {offset/scaled_dot|token_accuracy@96}",
        "{offset/uniform|token_accuracy@24} and {offset/uniform|token_accuracy@96}",
        "{offset/most frequent answer} of 24 symbols",
    ),
    Finding(
        "quick",
        "**Some location-based and monotonic mechanisms copy strings longer than those of "
        "training.** `raffel_monotonic` and `mocha` are not significantly different from "
        "`scaled_dot`.",
        "`transduction[rule=copy]`, recurrent networks: strings of up to 8 symbols, then of 10 and "
        "12; share of symbols written before the first error",
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
        "**`ntm_addressing`, `mma_h` and `ssnt` still do at four and eight times the length of "
        "training, `location_aware` in four of five seeds; `raffel_monotonic` does not.** All "
        "variants have learned the lengths of training: uniform attention writes "
        "{transduction[rule=copy]/uniform|prefix_accuracy} there.",
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
        "**Where there are more pairs than in training, softmax attention still finds nearly all "
        "values; small states and windows find fewer.** Recurrences stand without the norm and the "
        "gate of their papers, so the size of the state is not the only difference. In `modern`, "
        "with 16 pairs in training and a wider network, `linear_attention` is not significantly "
        "worse.",
        "`recall`, one layer of width 32, trained with 8 pairs: share of values among 20 and 32 "
        "pairs",
        "`linear_attention` {recall/linear_attention}, `gated_deltanet` {recall/gated_deltanet}, "
        "`sliding_window` {recall/sliding_window}",
        "{recall/scaled_dot}",
        "{recall/uniform}",
        "{recall/first value read}",
    ),
    Finding(
        "fresh_seeds",
        "**Forget gates, sums of neighbors and slopes by distance repeat patterns at four times "
        "the length of training; with rotary positions and sinusoids less than half of the symbols "
        "are right.**",
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
        "modern",
        "**On a small text of words only mechanisms that know the order of tokens are better than "
        "uniform attention.** Of them only `gated_deltanet` has an interval without the perplexity "
        "of trigrams. On characters (`stdlib_code`, a pipeline check) all mechanisms are better "
        "than uniform attention.",
        "`wikitext2_mini`: perplexity of words; less is better",
        "With order: `gated_deltanet` {wikitext2_mini/gated_deltanet}, `rope` "
        "{wikitext2_mini/rope}, `alibi` {wikitext2_mini/alibi}. Without: `gqa` "
        "{wikitext2_mini/gqa}, `learned_sink` {wikitext2_mini/learned_sink}",
        "{wikitext2_mini/scaled_dot}",
        "{wikitext2_mini/uniform}",
        "{wikitext2_mini/trigram, interpolated}: trigrams. Of the characters of `stdlib_code` "
        "trigrams are better than every network",
    ),
)


def findings_table(folders: Mapping[str, RunFolder]) -> str:
    """The findings as a table in Markdown.

    Args:
        folders: The runs by the stems of their packs.

    Raises:
        LookupError: A run has no such number.
    """
    rows = [HEADS, ["---"] * len(HEADS)]
    rows += [[filled(text, folders[one.run]) for text in one[1:]] for one in FINDINGS]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def filled(text: str, folder: RunFolder) -> str:
    """A text with the numbers of a run in their places."""
    return _PLACE.sub(lambda match: number(folder, *match.groups()), text)


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
