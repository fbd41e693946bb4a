"""Summarization: mechanisms, scores and non-neural baselines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from bench.api.answer import Answer
from bench.api.comparison import Entry
from bench.api.metric import Metric, Scored
from bench.api.task import Split
from tasks.data.word_pairs import WordPair, WordPairs
from tasks.metrics.text_scores import (
    NOVEL,
    REPEATED,
    ROUGE_1,
    ROUGE_2,
    ROUGE_L,
    ROUGES,
    UNKNOWN_SAID,
    bigram_scores,
    most_frequent,
    nearest,
    rouge,
    unknown_said,
)


class Summaries(WordPairs):
    """Words of a summary from the words of a document; greedy decoding, ROUGE."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        ROUGE_1,
        ROUGE_2,
        ROUGE_L,
        UNKNOWN_SAID,
        REPEATED,
        NOVEL,
    )
    family = "summarization"
    comparison = (
        Entry(variant="additive"),
        Entry(variant="none_state"),
        Entry(variant="unk_replacement"),
        Entry(variant="pointer_generator"),
        Entry(variant="coverage_loss[output=pointer_generator]"),
        Entry(variant="copynet"),
    )
    chance = 0.0

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """ROUGE against the first reference, unknown words, and what is repeated or new."""
        said, references, _ = zip(*self.said(answers), strict=True)
        found = rouge(said, [[reference] for reference in references])
        return [
            *(Scored(metric=ROUGES[name].name, value=value) for name, value in found.items()),
            *unknown_said(said, references, self.knows),
            *bigram_scores(said, self.sources(answers)),
        ]

    def lead(self, train: Sequence[WordPair], test: Sequence[WordPair]) -> float:
        """ROUGE-1 of as many first words as have the best ROUGE-1 in training."""
        length = best_length(train)
        return rouge([pair.source[:length] for pair in test], references_of(test))["rouge1"]

    def seen(self, train: Sequence[WordPair], test: Sequence[WordPair]) -> dict[str, float]:
        """ROUGE-1 of the most frequent summary, and of that of the most similar document."""
        frequent = most_frequent([pair.target for pair in train])
        chosen = nearest([pair.source for pair in train], [pair.source for pair in test])
        wanted = references_of(test)
        return {
            "most frequent summary": rouge([frequent] * len(test), wanted)["rouge1"],
            "nearest document": rouge([train[n].target for n in chosen], wanted)["rouge1"],
        }


def best_length(pairs: Sequence[WordPair]) -> int:
    """How many first words of each source have the best ROUGE-1 on average; of several the fewest.

    A summary may be a few words that stand far apart, so its own length can be a poor choice.

    >>> best_length([WordPair(("please", "read", "the", "plan", "soon"), ("plan",))])
    4
    """
    longest = max(1, *(len(pair.source) for pair in pairs))
    totals = np.zeros(longest)
    for pair, (reference,) in zip(pairs, references_of(pairs), strict=True):
        totals += [*_rouge_of_leads(pair.source, reference, longest)]
    return int(totals.argmax()) + 1


def _rouge_of_leads(
    source: Sequence[str], reference: Sequence[str], longest: int
) -> Iterator[float]:
    """ROUGE-1 of the first word, of the first two, and so on; a shorter source stays as it is.

    Each lead is the one before it and one word more. `rouge` begins anew with each, which takes
    seventy times as long.
    """
    from rouge_score.tokenizers import DefaultTokenizer  # noqa: PLC0415 - slow to import

    tokens = DefaultTokenizer(use_stemmer=False).tokenize
    left = Counter(tokens(" ".join(reference)))
    wanted, said, common = left.total(), 0, 0
    for word in [*source, *[""] * (longest - len(source))]:
        for token in tokens(word):
            said += 1
            common += left[token] > 0
            left[token] -= 1
        yield 2 * common / (said + wanted) if common else 0.0


def references_of(pairs: Sequence[WordPair]) -> list[list[list[str]]]:
    """The first reference of every pair, as `rouge` wants it."""
    return [[pair.references[0].split() if pair.references else [*pair.target]] for pair in pairs]
