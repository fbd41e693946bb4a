"""Documents that their first sentence sums up: the summary is its content words, copied.

What summaries of news and of mail have in common, reduced to symbols: a salutation without content,
a lead that the summary is taken from, and further sentences; some of the words to copy are names
outside the vocabulary. The setting is that of See et al., 2017, "Get to the point: summarization
with pointer-generator networks", https://arxiv.org/abs/1704.04368.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.string_baselines import COUNTED
from tasks.data.word_pairs import EncodedPair, WordPair
from tasks.data.words import Vocabulary
from tasks.metrics.attention_scores import ALIGNMENT_MATCH, alignment_scores
from tasks.summarization.summary_pairs import Summaries

PLAIN = ("the", "a", "of", "on", "in", "for", "with", "at", "by", "to")
"""Words that are in no summary."""
STOP, GREETING, COMMA = ".", "dear", ","
NAMES = 1000


@dataclass(frozen=True, kw_only=True)
class LeadCopyConfig(Config):
    """Options of documents with a lead."""

    vocab: Annotated[int, IntRange(2, 1000)] = 40
    """Content words in the vocabulary."""
    sentence: Annotated[int, IntRange(2, 30)] = 8
    """Words of a sentence."""
    weighty: Annotated[int, IntRange(1, 15)] = 4
    """Content words of a sentence."""
    sentences: Annotated[int, IntRange(1, 20)] = 3
    """Sentences of a document, the lead included."""
    unknown: Annotated[float, FloatRange(0.0, 1.0)] = 0.3
    """Share of content words that are names."""
    evaluate: int = 256
    """Documents of validation and of test."""

    def __post_init__(self) -> None:
        """Check that a sentence holds its content words."""
        if not 1 <= self.weighty <= self.sentence or not 0 <= self.unknown <= 1:
            raise InvalidConfig(
                "lead_copy: 1 <= weighty <= sentence and 0 <= unknown <= 1, "
                f"got {self.weighty}, {self.sentence} and {self.unknown}."
            )
        if min(self.vocab, self.sentences, self.evaluate) < 1:
            raise InvalidConfig(
                "lead_copy: vocab, sentences and evaluate must be at least 1, "
                f"got {self.vocab}, {self.sentences} and {self.evaluate}."
            )


@register(
    "task",
    "lead_copy",
    config=LeadCopyConfig,
    citation=Citation(text="See et al., 2017", url="https://arxiv.org/abs/1704.04368"),
)
class LeadCopy(Summaries):
    """The content words of the first sentence, in their order.

    >>> task = LeadCopy(LeadCopyConfig(evaluate=1), seed=0)
    >>> (pair,) = task.held("test")
    >>> set(pair.target) <= set(pair.source), len(pair.target)
    (True, 4)
    """

    metrics = (*Summaries.metrics, ALIGNMENT_MATCH)
    capabilities = frozenset({"gold_alignment", "source_tokens"})
    presets = {
        "smoke": TaskPreset(
            options="lead_copy[vocab=10,sentence=4,weighty=2,sentences=2,evaluate=24]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=20]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="lead_copy",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[lr=0.004,steps=400,batch=32,evaluate_every=200]",
            seconds=9.0,
        ),
        "standard": TaskPreset(
            options="lead_copy[vocab=100,sentences=6,evaluate=1000]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[lr=0.002,steps=3000,batch=64,evaluate_every=500]",
            seconds=300.0,
        ),
    }
    ceiling = 1.0

    def __init__(self, config: LeadCopyConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.weighty = [f"w{number}" for number in range(config.vocab)]
        words = Vocabulary([STOP, GREETING, COMMA, *PLAIN, *self.weighty])
        # a salutation of three words, and a full stop after every sentence
        self.settle({}, words, 3 + config.sentences * (config.sentence + 1))

    def held(self, split: Split) -> list[WordPair]:
        """The documents of validation or test."""
        return self._drawn(self.config.evaluate, self.seeded(split))

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """New documents in every batch."""
        while True:
            yield self.batch(self.encode(self._drawn(batch_size, generator)))

    def batch(self, rows: Sequence[EncodedPair], *, shown: bool = False) -> Batch:
        """The batch, with the position that every word of the summary comes from."""
        found = super().batch(rows, shown=shown)
        extended = found.extended
        assert extended is not None
        gold = torch.zeros(len(rows), found.targets.shape[1], extended.shape[1])
        for number, row in enumerate(rows):
            for step, place in enumerate(self._places(row.pair)):
                gold[number, step, place] = 1.0
        return replace(found, gold=gold)

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """The common scores, and whether the largest weight is on the copied word."""
        match = alignment_scores(answers, self.sizes.max_length)
        return [
            *super().score(split, answers),
            *(scored for scored in match if scored.metric == ALIGNMENT_MATCH.name),
        ]

    def baselines(self) -> dict[str, float]:
        """As many first words of the document, or of its lead, as are best in training."""
        train, test = self._drawn(COUNTED, self.seeded(4)), self.held("test")
        return {
            "first words": self.lead(train, test),
            "words of the lead": self.lead(_without_greeting(train), _without_greeting(test)),
        }

    def examples(self) -> Batch:
        """The first documents of the test."""
        return self.show(self.held("test")[:2])

    def _places(self, pair: WordPair) -> list[int]:
        """Positions of the words of the summary, then the end of the document."""
        start = 3 if pair.source[0] == GREETING else 0
        lead = range(start, start + self.config.sentence)
        places = [place for place in lead if pair.source[place] not in PLAIN]
        return [*places, len(pair.source)]

    def _drawn(self, count: int, generator: torch.Generator) -> list[WordPair]:
        config = self.config
        size = config.sentences * config.sentence
        numbers = torch.rand(count, 3 * size + 2, generator=generator).tolist()
        return [self._document(row[:2], row[2:]) for row in numbers]

    def _document(self, head: list[float], numbers: list[float]) -> WordPair:
        """A document from numbers between 0 and 1, three a word; it ends with its sentences."""
        config = self.config
        words: list[str] = [GREETING, _name(head[1]), COMMA] if head[0] < 0.5 else []
        summary: list[str] = []
        width = 3 * config.sentence
        for sentence in range(config.sentences):
            mine = numbers[sentence * width : (sentence + 1) * width]
            order = sorted(range(config.sentence), key=mine.__getitem__)
            weighty = set(order[: config.weighty])
            said = [
                self._word(place in weighty, *mine[config.sentence + 2 * place :][:2])
                for place in range(config.sentence)
            ]
            words += [*said, STOP]
            summary = summary or [said[place] for place in sorted(weighty)]
        return WordPair(tuple(words), tuple(summary))

    def _word(self, weighty: bool, kind: float, number: float) -> str:
        if not weighty:
            return PLAIN[int(number * len(PLAIN))]
        if kind < self.config.unknown:
            return _name(number)
        return self.weighty[int(number * len(self.weighty))]


def _without_greeting(pairs: Sequence[WordPair]) -> list[WordPair]:
    return [
        pair._replace(source=pair.source[3:] if pair.source[0] == GREETING else pair.source)
        for pair in pairs
    ]


def _name(number: float) -> str:
    return f"name{int(number * NAMES)}"
