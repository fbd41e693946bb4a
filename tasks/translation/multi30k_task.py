"""Translation of image captions: subwords, batches, baselines.

Elliott et al., 2016, "Multi30K: multilingual English-German image descriptions",
https://aclanthology.org/W16-3210.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.corpus import Part
from tasks.data.multi30k import load_multi30k
from tasks.data.samples import decoded_samples
from tasks.data.subwords import BOS, EOS, SubwordConfig, Subwords, corpus_subwords
from tasks.metrics.attention_scores import alignment_scores
from tasks.metrics.delays import delay_scores
from tasks.metrics.text_scores import nearest
from tasks.metrics.translation_scores import (
    TEXT_METRICS,
    bleu_by_length,
    corpus_bleu,
    likelihood,
    text_scores,
)

Language = Literal["de", "en", "fr", "cs"]

QUICK = "hidden=128,embedding=128,projection=bfloat16,encoder=embed[positions=learned]"
"""Options of the recurrent backbone in quick sizes."""

SHOWN: Mapping[str, tuple[str, ...]] = {
    "de": (
        "Ein Mädchen füttert zwei Hunde im Garten.",
        "Drei Männer in roten Jacken stehen vor einem Haus.",
        "Eine Frau liest ihrer Katze auf einer Bank ein Buch vor.",
    ),
    "en": (
        "A girl is feeding two dogs in the garden.",
        "Three men in red jackets are standing in front of a house.",
        "A woman is reading a book to her cat on a bench.",
    ),
    "fr": (
        "Une fille nourrit deux chiens dans le jardin.",
        "Trois hommes en vestes rouges se tiennent devant une maison.",
        "Une femme lit un livre à son chat sur un banc.",
    ),
    "cs": (
        "Dívka krmí na zahradě dva psy.",
        "Tři muži v červených bundách stojí před domem.",
        "Žena čte na lavičce své kočce knihu.",
    ),
}
"""Captions written by us, in the style of the data, with our own translations."""


@dataclass(frozen=True, kw_only=True)
class OneWayConfig(Config):
    """Options of tasks from one language into another."""

    source: Language = "de"
    """Language to translate from."""
    target: Language = "en"
    """Language to translate into."""
    vocab: Annotated[int, IntRange(500, 16000, log=True)] = 3000
    """Subwords of each language."""
    lowercase: bool = True
    """Lower-case everything, references too."""
    validate: Annotated[int, Legal(1)] = 250
    """Sentences decoded at each validation."""
    test: Annotated[int, Legal(1)] = 1000
    """Sentences of the test (all 1000 of test_2016_flickr)."""
    train: Annotated[int, Legal(0)] = 0
    """Training pairs to use; 0 for all 29000."""

    def __post_init__(self) -> None:
        """Check that there is something to translate."""
        if self.source == self.target:
            raise InvalidConfig(f"translation: source and target are both {self.source!r}.")


@runtime_checkable
class CaptionOptions(Protocol):
    """Options that every task over captions has."""

    @property
    def vocab(self) -> int:
        """Subwords of each language."""

    @property
    def lowercase(self) -> bool:
        """Lower-case everything, references too."""

    @property
    def validate(self) -> int:
        """Sentences decoded at each validation."""

    @property
    def test(self) -> int:
        """Sentences of the test."""

    @property
    def train(self) -> int:
        """Training rows to use; 0 for all."""


class Captions(Task):
    """Captions in one or more languages, translated into one; greedy decoding, corpus BLEU."""

    metrics: ClassVar[tuple[Metric, ...]] = TEXT_METRICS
    decodes = True
    needs_predictions = False
    needs_download = True
    data_sets = ("multi30k",)
    data_license = License("no open license; research use (Multi30k)", redistributable=False)
    chance = 0.0

    def __init__(
        self,
        config: Config,
        seed: int,
        data_dir: Path | None = None,
        *,
        sources: Sequence[str],
        target: str,
    ) -> None:
        super().__init__(config, seed, data_dir)
        assert isinstance(config, CaptionOptions), "tasks over captions have these options"
        self.asked: CaptionOptions = config
        self.languages, self.target = tuple(sources), target
        self.corpus = load_multi30k((*sources, target), data_dir)
        subwords = SubwordConfig(size=config.vocab, lowercase=config.lowercase)
        self.vocabularies = tuple(
            corpus_subwords(self.corpus, (language,), subwords) for language in (*sources, target)
        )
        self.source_words, self.target_words = self.vocabularies[0], self.vocabularies[-1]
        self.pairs = self._encode(self.corpus.train, config.train)
        """Ids of every training row: its sources, and behind them its target."""
        longest = max(len(row[-1]) for row in self.pairs)
        *read, said = (words.size for words in self.vocabularies)
        self.sizes = Sizes(tuple(read), said, min(80, longest + 10))
        self.notes["data"] = self.corpus.note
        asked = {"train": config.train, "validation": config.validate, "test": config.test}
        for part, rows in asked.items():
            self.note_fewer(part, rows, len(getattr(self.corpus, part)[target]))
        self._evaluation: dict[str, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        lengths = [(len(row[-1]), *map(len, row[:-1])) for row in self.pairs]
        while True:
            for chosen in bucketed_batches(lengths, batch_size, generator):
                yield text_batch([self.pairs[index] for index in chosen])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Sentences of about equal length together; the order of the answers is kept with them."""
        if split not in self._evaluation:
            count = self.asked.test if split == "test" else self.asked.validate
            self._evaluation[split] = self._fixed(self._part(split), count)
        return self._evaluation[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Scores of the greedy output, the likelihood of the reference, and a curve of lengths.

        Those of attention leave out batches with a source of more subwords than decoding may say,
        and those of delays such sentences.
        """
        said = [self._text(row) for answer in answers for row in answer.generated or ()]
        references = [text for answer in answers for text in answer.batch.references]
        sources = [text for answer in answers for text in answer.batch.names]
        lower = self.asked.lowercase
        found, signatures = text_scores(said, references, lowercase=lower)
        self.notes |= signatures
        if split == "test":
            found += bleu_by_length(said, references, sources, lowercase=lower)
        found += likelihood(answers)
        found += alignment_scores(answers, self.sizes.max_length)
        return found + delay_scores(answers, self.sizes.max_length)

    def baselines(self) -> Mapping[str, float]:
        """BLEU of the source itself and of the training caption whose source is nearest."""
        batches = self.evaluation("test")
        references = [text for batch in batches for text in batch.references]
        sources = [text for batch in batches for text in batch.names]
        count = self.asked.train or None
        remembered = self.corpus.train[self.languages[0]][:count]
        translated = self.corpus.train[self.target][:count]
        places = nearest(_spelled(remembered), _spelled(sources))
        said = {
            "copy the source": sources,
            "nearest training caption": [translated[place] for place in places],
        }
        lower = self.asked.lowercase
        return {
            name: corpus_bleu(texts, references, lowercase=lower) for name, texts in said.items()
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th sentence, from short ones to long ones."""
        return decoded_samples(answers, count, self._text)

    def examples(self) -> Batch:
        """Three captions written by us."""
        return self._fixed(SHOWN, len(SHOWN[self.target]))[0]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Subwords; the end of a sentence as such."""
        words = self.source_words if source else self.target_words
        return ["</s>" if number == EOS else words.decode([number]) or "▁" for number in ids]

    def _text(self, ids: Sequence[int]) -> str:
        return self.target_words.decode(list(ids))

    def _part(self, split: Split) -> Part:
        if split == "train":
            return self.corpus.train
        return self.corpus.validation if split == "validation" else self.corpus.test

    def _encode(self, part: Part, count: int) -> list[tuple[list[int], ...]]:
        """Ids of the first rows of a part, 0 for all: sources, then the target."""
        languages = (*self.languages, self.target)
        columns = [
            _encoded(words, part[language][: count or None])
            for words, language in zip(self.vocabularies, languages, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def _fixed(self, part: Part, count: int) -> list[Batch]:
        rows = self._encode(part, count)
        names, references = part[self.languages[0]], part[self.target]
        order = sorted(range(len(rows)), key=lambda index: len(rows[index][0]))
        return [
            text_batch(
                [rows[index] for index in order[at : at + 128]],
                tuple(references[index] for index in order[at : at + 128]),
                tuple(names[index] for index in order[at : at + 128]),
            )
            for at in range(0, len(order), 128)
        ]


def text_batch(
    rows: Sequence[tuple[list[int], ...]],
    references: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
) -> Batch:
    """Pad rows of sources and a target; decoder inputs are the targets, one position later."""
    *sources, said = zip(*rows, strict=True)
    targets, mask = pad_rows(said)
    inputs = torch.cat((torch.full((len(rows), 1), BOS), targets[:, :-1]), 1)
    return Batch(
        sources=tuple(_padded(source) for source in sources),
        inputs=inputs,
        targets=targets,
        mask=mask,
        references=references,
        names=names,
    )


def _spelled(texts: Sequence[str]) -> list[list[str]]:
    """Lower-cased words of each text, without marks."""
    return [re.findall(r"\w+", text.lower()) for text in texts]


def _encoded(words: Subwords, lines: Sequence[str]) -> list[list[int]]:
    return words.encode_lines(lines, eos=True)


def _padded(rows: Sequence[list[int]]) -> Text:
    tokens, real = pad_rows(rows)
    return Text(tokens, None if bool(real.all()) else real)
