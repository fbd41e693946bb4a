"""Summarization: mechanisms, scores and non-neural baselines."""

from collections.abc import Sequence
from typing import ClassVar

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
        """ROUGE-1 of as many first words as a summary has on average in training."""
        length = round(sum(len(pair.target) for pair in train) / len(train))
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


def references_of(pairs: Sequence[WordPair]) -> list[list[list[str]]]:
    """The first reference of every pair, as `rouge` wants it."""
    return [[pair.references[0].split() if pair.references else [*pair.target]] for pair in pairs]
