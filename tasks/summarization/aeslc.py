"""Subject lines of real e-mails: summaries of a few words that use rare names of the text.

Zhang & Tetreault, 2019, "This email could save your life: introducing the task of email subject
line generation", https://aclanthology.org/P19-1043. The mechanisms are those of See et al., 2017,
"Get to the point: summarization with pointer-generator networks",
https://arxiv.org/abs/1704.04368.

Deviations: a small vocabulary of lower-cased words, so that copying matters; only the first words
of an e-mail are read; of training e-mails with the same first words one is kept, and none whose
first words are those of an e-mail of validation or test; 205 of the 1,906 e-mails of the test are,
with their subjects, also in validation, as published; smoke and quick train on a part of the
e-mails and evaluate on as many as their options say, spread evenly. ROUGE is scored against the
original subject; `rouge_1_best_f1` takes the best of it and the three subjects that other people
wrote, where the data have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.comparison import PublishedResult
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.aeslc import ANNOTATIONS, load_aeslc
from tasks.data.tables import Row
from tasks.data.word_pairs import WordPair, spread
from tasks.data.words import Vocabulary, tokenize
from tasks.metrics.text_scores import ROUGE_1, ROUGE_2, rouge
from tasks.summarization.summary_pairs import Summaries

ROUGE_1_BEST = Metric(
    name="rouge_1_best_f1",
    title="ROUGE-1, best of all subjects",
    unit="F1, mean over summaries",
    low=0.0,
    high=1.0,
    better="higher",
)
OWN = (
    WordPair(
        tuple(tokenize("The workshop on Tuesday moves to room 12. Please tell Ottilie.")),
        tuple(tokenize("Workshop on Tuesday moves")),
    ),
    WordPair(
        tuple(tokenize("Hello Brunhild, attached is the report on gas storage for October.")),
        tuple(tokenize("Report on gas storage")),
    ),
)


@dataclass(frozen=True, kw_only=True)
class AeslcConfig(Config):
    """Options of subject lines."""

    words: Annotated[int, IntRange(10, 400)] = 60
    """First words of an e-mail that are read."""
    subject: Annotated[int, IntRange(1, 30)] = 10
    """First words of a subject that are learned; references stay whole."""
    vocab: Annotated[int, IntRange(100, 20000, log=True)] = 2000
    """Words known, special ones included."""
    train: int = 0
    """E-mails to train on, the first ones; 0 for all."""
    evaluate: Annotated[int, IntRange(1, 1906)] = 1906
    """E-mails of validation and of test, spread evenly."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.words, self.subject, self.evaluate) < 1 or self.train < 0 or self.vocab < 5:
            raise InvalidConfig(
                "aeslc: words, subject and evaluate >= 1, train >= 0 and vocab >= 5, got "
                f"{self.words}, {self.subject}, {self.evaluate}, {self.train} and {self.vocab}."
            )


@register(
    "task",
    "aeslc",
    config=AeslcConfig,
    citation=Citation(text="Zhang and Tetreault, 2019", url="https://aclanthology.org/P19-1043"),
)
class Aeslc(Summaries):
    """The first words of an e-mail to its subject."""

    metrics = (*Summaries.metrics, ROUGE_1_BEST)
    published_results = (
        PublishedResult(
            what="extraction of sentences, then abstraction",
            metric=ROUGE_1.name,
            value=0.2367,
            text="Zhang and Tetreault, 2019",
            url="https://aclanthology.org/P19-1043",
            where="multi-stage model",
            differs=(
                "Whole e-mails and all 14436 of training, instead of first words and a "
                "small vocabulary; another ROUGE program."
            ),
        ),
        PublishedResult(
            what="extraction of sentences, then abstraction",
            metric=ROUGE_2.name,
            value=0.1029,
            text="Zhang and Tetreault, 2019",
            url="https://aclanthology.org/P19-1043",
            where="multi-stage model",
            differs=(
                "Whole e-mails and all 14436 of training, instead of first words and a "
                "small vocabulary; another ROUGE program."
            ),
        ),
        PublishedResult(
            what="PEGASUS, pretrained on C4",
            metric=ROUGE_1.name,
            value=0.3769,
            text="Zhang et al., 2020",
            url="https://github.com/google-research/pegasus",
            where="README, results update, aeslc, C4",
            differs=(
                "Pretrained on web pages; whole e-mails, subwords, other ROUGE settings, instead "
                "of first words and a small vocabulary."
            ),
        ),
    )
    presets = {
        "smoke": TaskPreset(
            options="aeslc[words=20,subject=6,vocab=200,train=60,evaluate=16]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=8,batch=8,evaluate_every=8]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="aeslc[words=50,vocab=1000,train=5000,evaluate=250]",
            backbone="rnn_seq2seq[hidden=96,embedding=64]",
            protocol="adam[lr=0.004,steps=600,batch=32,evaluate_every=300]",
            seconds=22.0,
        ),
        "standard": TaskPreset(
            options="aeslc[words=80,vocab=4000]",
            backbone="rnn_seq2seq[hidden=192,embedding=128,dropout=0.2]",
            protocol="adam[lr=0.001,steps=6000,batch=32,evaluate_every=600]",
            seconds=900.0,
        ),
    }
    data_sets = ("aeslc",)
    needs_download = True
    data_license = License("CC BY-NC-SA 4.0 (AESLC)", redistributable=False)

    def __init__(self, config: AeslcConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        table = load_aeslc(data_dir)
        self.notes["data"] = table.note
        held: dict[Split, list[WordPair]] = {
            "validation": [self._pair(row) for row in table.parts["validation"]],
            "test": [self._pair(row) for row in table.parts["test"]],
        }
        # a network reads the first words alone: none twice, and none that are evaluated on
        known = {pair.source for part in held.values() for pair in part}
        train: dict[tuple[str, ...], WordPair] = {}
        for row in table.parts["train"]:
            pair = self._pair(row)
            if pair.source not in known:
                train.setdefault(pair.source, pair)
                if len(train) == config.train:
                    break
        self.note_fewer("train", config.train, len(train))
        pairs: dict[Split, list[WordPair]] = {"train": list(train.values())}
        for part, found in held.items():
            self.note_fewer(part, config.evaluate, len(found))
            pairs[part] = spread(found, config.evaluate)
        sides = [side for pair in pairs["train"] for side in (pair.source, pair.target)]
        self.settle(
            pairs, Vocabulary.count(sides, config.vocab), limit=f"aeslc: words={config.words}"
        )

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """The common scores, and ROUGE-1 against the best of several subjects."""
        said = [pair.source for pair in self.said(answers)]
        texts = [text for answer in answers for text in answer.batch.references]
        every = [[line.split() for line in text.split("\n")] for text in texts]
        best = Scored(metric=ROUGE_1_BEST.name, value=rouge(said, every)["rouge1"])
        return [*super().score(split, answers), best]

    def baselines(self) -> dict[str, float]:
        """The best lead, a frequent subject, and the subject of the most similar e-mail."""
        train, test = self.pairs["train"], self.pairs["test"]
        return {"first words": self.lead(train, test), **self.seen(train, test)}

    def examples(self) -> Batch:
        """Two e-mails written by us."""
        return self.show(OWN)

    def _pair(self, row: Row) -> WordPair:
        config = self.config
        body = tokenize(row["email_body"])[: config.words]
        subjects = [row["subject_line"], *(row[name] for name in ANNOTATIONS if name in row)]
        words = [tokenize(subject) for subject in subjects]
        return WordPair(
            tuple(body),
            tuple(words[0][: config.subject]),
            tuple(" ".join(one) for one in words if one),
        )
