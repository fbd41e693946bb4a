"""Pseudo-code to code: English lines to lines of Django, whose identifiers must be copied.

Oda et al., 2015, "Learning to generate pseudo-code from source code using statistical machine
translation", https://doi.org/10.1109/ASE.2015.36, read in the other direction as by Ling et al.,
2016, "Latent predictor networks for code generation", https://arxiv.org/abs/1603.06744.

Deviations: words are runs of letters and digits, and single marks, in both languages, so that what
is inside strings can be copied word by word; pairs that are longer than the options say are
left out of all parts (the notes say how many), and training pairs that are also in validation or
test are left out of training; 183 of the 1,805 pairs of the test are also in validation, as in the
literature; smoke and quick evaluate on as many lines as their options say, spread evenly. The
vocabulary is small on purpose. The hub copy has other parts, drawn at random, so its numbers are
neither the data directory's nor the literature's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.comparison import PublishedResult
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.copying.code_pairs import COPYING, FAMILY, baseline_scores
from tasks.data.django import load_django
from tasks.data.tables import Row
from tasks.data.word_pairs import WordPair, WordPairs, spread
from tasks.data.words import Vocabulary
from tasks.metrics.accuracy import SEQUENCE_ACCURACY
from tasks.metrics.text_scores import BLEU, UNKNOWN_SAID, Words, bleu, exact_match, unknown_said

_TOKEN = re.compile(r"\w+|[^\w\s]")


def code_words(text: str) -> tuple[str, ...]:
    """Split English or code; case is kept.

    >>> code_words("x_1 = f('a b')")
    ('x_1', '=', 'f', '(', "'", 'a', 'b', "'", ')')
    """
    return tuple(_TOKEN.findall(text))


OWN = tuple(
    WordPair(code_words(anno), code_words(code))
    for anno, code in (
        ("import module zebra.", "import zebra"),
        ("call the function walk with argument garden,", "walk ( garden )"),
        ("if pigeon is not None,", "if pigeon is not None :"),
    )
)


LINES: Mapping[Split, int] = {"validation": 1000, "test": 1805}
"""Lines of the whole parts, of any length; fewer are those of a file that was cut short."""


@dataclass(frozen=True, kw_only=True)
class DjangoConfig(Config):
    """Options of pseudo-code to code."""

    longest: Annotated[int, IntRange(10, 200)] = 40
    """Words of English and of code in a pair, at most."""
    vocab: Annotated[int, IntRange(50, 10000, log=True)] = 500
    """Words known, special ones included."""
    train: int = 0
    """Pairs to train on, spread evenly; 0 for all."""
    evaluate: Annotated[int, IntRange(1, 1805)] = 1805
    """Lines of validation and of test at most, spread evenly."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.longest, self.evaluate) < 1 or self.train < 0 or self.vocab < 5:
            raise InvalidConfig(
                "django: longest and evaluate >= 1, train >= 0 and vocab >= 5, got "
                f"{self.longest}, {self.evaluate}, {self.train} and {self.vocab}."
            )


@register(
    "task",
    "django",
    config=DjangoConfig,
    citation=Citation(text="Ling et al., 2016", url="https://arxiv.org/abs/1603.06744"),
)
class Django(WordPairs):
    """An English line to a line of Python; greedy decoding, BLEU of words."""

    metrics = (BLEU, SEQUENCE_ACCURACY, UNKNOWN_SAID)
    family = FAMILY
    comparison = COPYING
    published_results = (
        PublishedResult(
            what="phrase-based statistical translation",
            metric=BLEU.name,
            value=47.6,
            text="Ling et al., 2016",
            url="https://arxiv.org/abs/1603.06744",
            where="results on Django",
            differs=(
                "Non-neural. All 16000 training lines and all 1805 of the test, of any length "
                "and also those that training has; other tokens and a larger vocabulary."
            ),
        ),
        PublishedResult(
            what="latent predictor network, with copying",
            metric=BLEU.name,
            value=77.6,
            text="Ling et al., 2016",
            url="https://arxiv.org/abs/1603.06744",
            where="results on Django",
            differs=(
                "Characters too. All 16000 training lines and all 1805 of the test, of any "
                "length and also those that training has; other tokens and a larger vocabulary."
            ),
        ),
        PublishedResult(
            what="attentional translation network (Neubig, 2015)",
            metric=SEQUENCE_ACCURACY.name,
            value=0.451,
            text="Yin & Neubig, 2018",
            url="https://arxiv.org/abs/1810.02720",
            where="table 2",
            differs=(
                "All 16000 training lines and all 1805 of the test, of any length and also "
                "those that training has; other tokens and a larger vocabulary."
            ),
        ),
        PublishedResult(
            what="latent predictor network, with copying (Ling et al., 2016)",
            metric=SEQUENCE_ACCURACY.name,
            value=0.623,
            text="Yin & Neubig, 2018",
            url="https://arxiv.org/abs/1810.02720",
            where="table 2",
            differs=(
                "Characters too. All 16000 training lines and all 1805 of the test, of any "
                "length and also those that training has; other tokens and a larger vocabulary."
            ),
        ),
        PublishedResult(
            what="TRANX, which writes syntax trees and copies",
            metric=SEQUENCE_ACCURACY.name,
            value=0.737,
            text="Yin & Neubig, 2018",
            url="https://arxiv.org/abs/1810.02720",
            where="table 2",
            differs=(
                "Knows the grammar of Python. All 16000 training lines and all 1805 of the "
                "test, of any length and also those that training has; other tokens and a "
                "larger vocabulary."
            ),
        ),
    )
    presets = {
        "smoke": TaskPreset(
            options="django[longest=12,vocab=100,train=60,evaluate=16]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=8,batch=8,evaluate_every=8]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="django[longest=30,vocab=300,evaluate=250]",
            backbone="rnn_seq2seq[hidden=96,embedding=64]",
            protocol="adam[lr=0.004,steps=800,batch=32,evaluate_every=400]",
            seconds=14.4,
        ),
        "standard": TaskPreset(
            options="django[longest=60,vocab=1000]",
            backbone="rnn_seq2seq[hidden=192,embedding=128,dropout=0.2]",
            protocol="adam[lr=0.002,steps=6000,batch=32,evaluate_every=600]",
            seconds=600.0,
        ),
    }
    data_sets = ("django",)
    needs_download = True
    data_license = License("MIT, Django pseudo-code corpus", redistributable=True)
    chance = 0.0
    ceiling = 100.0

    def __init__(self, config: DjangoConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        table = load_django(data_dir)
        pairs: dict[Split, list[WordPair]] = {}
        lengths: list[str] = []
        held: set[WordPair] = set()
        parts: tuple[Split, ...] = ("test", "validation", "train")
        for part in parts:
            every = [_pair(row) for row in table.parts[part]]
            short = [pair for pair in every if max(map(len, pair)) <= config.longest]
            lengths.append(f"{len(every) - len(short)} of {len(every)} in {part}")
            if part != "train":
                held.update(short)
                most = min(config.evaluate, LINES[part])
                # who asks for a whole part, as the default does, asks for its short lines
                self.note_fewer(part, most, len(every if most == LINES[part] else short))
                pairs[part] = spread(short, config.evaluate)
                continue
            kept = [pair for pair in dict.fromkeys(short) if pair not in held]
            self.note_fewer(part, config.train, len(kept))
            pairs[part] = spread(kept, config.train)
        self.notes["data"] = table.note
        self.notes["left out as too long"] = ", ".join(lengths)
        sides = [side for pair in pairs["train"] for side in (pair.source, pair.target)]
        self.settle(
            pairs, Vocabulary.count(sides, config.vocab), limit=f"django: longest={config.longest}"
        )

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """BLEU, exact match, and unknown words of the greedy output."""
        said, references, _ = zip(*self.said(answers), strict=True)
        value, self.notes[BLEU.name] = bleu(said, references)
        return [
            Scored(metric=BLEU.name, value=value),
            Scored(metric=SEQUENCE_ACCURACY.name, value=exact_match(said, references)),
            *unknown_said(said, references, self.knows),
        ]

    def baselines(self) -> dict[str, float]:
        """The most frequent line, the English itself, and the line of the nearest English."""

        def score(said: Sequence[Words], references: Sequence[Words]) -> float:
            return bleu(said, references)[0]

        test = self.pairs["test"]
        return baseline_scores(self.pairs["train"], test, [pair.source for pair in test], score)

    def examples(self) -> Batch:
        """Three lines written by us."""
        return self.show(OWN)


def _pair(row: Row) -> WordPair:
    return WordPair(code_words(row["anno"]), code_words(row["code"]))
