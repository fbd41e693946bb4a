"""Questions about stories: the bAbI tasks, learned together or one at a time.

Weston et al., 2015, "Towards AI-complete question answering: a set of prerequisite toy tasks",
https://arxiv.org/abs/1502.05698; the network is that of Sukhbaatar et al., 2015, "End-to-end memory
networks", https://arxiv.org/abs/1503.08895, section 4. Answers of several words (tasks 8 and 19)
are one label each, as there. A data directory may lack a training part; the hub copy has all
twenty.

The stories of some tasks are so short that the same story with the same question, word for word,
is in training and in the test. The published set and its published results have them too, so
nothing is dropped: a note counts such questions, and the error on all others is its own score.

The vocabulary has the words of all training stories that are read, those kept for validation
included: of validation no word is unknown, and of the test each that training stories lack.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch

from bench.api.answer import Answer
from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Choices, Config
from bench.api.errors import DataUnavailable, InvalidConfig
from bench.api.license import License
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import SEEN, Split, TaskPreset
from tasks.data.babi import load_babi
from tasks.data.corpus import parts_note
from tasks.data.tables import Row
from tasks.data.words import Vocabulary, tokenize
from tasks.reading.stories import ERROR, Asked, Reading, question_epochs, readers

SUBSETS = {
    "all": tuple(range(1, 21)),
    "short": (1, 4, 6, 9, 10, 12, 15, 20),
}
"""`short`: stories that a small network reads in seconds."""
UNSEEN_ERROR = Metric(
    name="unseen_error_proportion",
    title="Error on questions that training lacks, mean over tasks",
    unit="fraction of questions",
    low=0.0,
    high=1.0,
    better="lower",
    group="diagnostic",
)
HELD = 10
"""Every tenth training story of a task is kept for validation, with all its questions."""
_ASKED: tuple[Split, ...] = ("validation", "test")


@dataclass(frozen=True, kw_only=True)
class BabiConfig(Config):
    """Options of the bAbI tasks."""

    subset: Annotated[Literal["all", "short"], Choices(("all", "short"))] = "all"
    """Tasks that are learned together."""
    number: int = 0
    """One task alone, 1 to 20; 0 for the subset together."""
    train: int = 0
    """First training questions of each task, those for validation included; 0 for all 10000."""
    test: int = 0
    """First test questions of each task; 0 for all 1000."""
    joined: bool = False
    """Whether story and question are one text, for networks that read one."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if not 0 <= self.number <= 20 or min(self.train, self.test) < 0:
            raise InvalidConfig(
                "babi: number is 1 to 20 or 0 for all of the subset, train and test at least 0, "
                f"got {self.number}, {self.train}, {self.test}."
            )


@register(
    "task",
    "babi",
    config=BabiConfig,
    revision=2,
    citation=Citation(text="Weston et al., 2015", url="https://arxiv.org/abs/1502.05698"),
)
class Babi(Reading):
    """Stories of `en-10k`: all 20 tasks together, or 8 of 20 tasks with `subset=short`.

    A task whose training part is not there is left out, and noted.
    """

    metrics = (*Reading.metrics, UNSEEN_ERROR)
    seen_in_training = (
        "Some questions of the test are in training with their story, word for word: at the "
        "quick size 28 of 250 of task 4 and 30 of 250 of task 20, with all questions 714 of 1000 "
        "of task 4. Published numbers have them too, so they stay; the error on the others is "
        "a further metric."
    )
    presets = {
        "smoke": TaskPreset(
            options="babi[number=1,train=100,test=40]",
            backbone="memn2n[hops=2]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="babi[subset=short,train=1000,test=250]",
            backbone="memn2n[width=32,hops=3]",
            protocol="adam[lr=0.005,steps=1000,batch=32,evaluate_every=500]",
            seconds=10.0,
        ),
        "standard": TaskPreset(
            options="babi",
            backbone="memn2n[width=50,hops=3]",
            protocol="adam[lr=0.003,steps=30000,batch=32,evaluate_every=3000]",
            seconds=900.0,
        ),
    }
    comparison = (
        *readers("babi"),
        # the recurrent network without attention, the usual baseline since Weston et al.
        Entry(
            variant="last_state",
            task="babi[joined=true]",
            backbone="pooling[embedding=32,encoder=uni_rnn[cell=lstm]]",
        ),
    )
    published_results = (
        PublishedResult(
            what=(
                "end-to-end memory network, three hops, position encoding, linear start and "
                "random noise, learned jointly from 1000 questions a task"
            ),
            metric=ERROR.name,
            value=0.0309,
            text="Sukhbaatar et al., 2015",
            url="https://arxiv.org/abs/1503.08895",
            where="table 1, mean of tasks 1, 4, 6, 9, 10, 12, 15 and 20",
            differs=(
                "Learned on all twenty tasks together, width 50, the best of ten starts by "
                "training error; the official files of 1000 questions, ours are the first 1000 "
                "of 10000."
            ),
            about="babi[number=0,subset=short,train=1000]",
        ),
        PublishedResult(
            what=(
                "end-to-end memory network, three hops, position encoding, linear start and "
                "random noise, learned jointly from 1000 questions a task"
            ),
            metric=ERROR.name,
            value=0.124,
            text="Sukhbaatar et al., 2015",
            url="https://arxiv.org/abs/1503.08895",
            where="table 1, mean error of all twenty tasks",
            differs=(
                "Width 50, the best of ten starts by training error; the official files of 1000 "
                "questions, ours are the first 1000 of 10000; the mean holds task 3 (an error of "
                "0.219), which ours leaves out where its training part is not there."
            ),
            about="babi[number=0,subset=all,train=1000]",
        ),
        PublishedResult(
            what="differentiable neural computer, learned jointly",
            metric=ERROR.name,
            value=0.167,
            text="Franke et al., 2018",
            url="https://github.com/JoergFranke/ADNC",
            where="README, bAbI results, mean error",
            differs=(
                "A recurrent network with written memory, a story word by word; no memory of "
                "sentences. Learned on all twenty tasks together; the mean holds task 3, which "
                "ours leaves out where its training part is not there."
            ),
            about="babi[number=0,subset=all,train=0]",
        ),
        PublishedResult(
            what="recurrent entity network, learned jointly",
            metric=ERROR.name,
            value=0.097,
            text="Franke et al., 2018",
            url="https://github.com/JoergFranke/ADNC",
            where="README, bAbI results, mean error",
            differs=(
                "Memory cells that are rewritten by every sentence. Learned on all twenty tasks "
                "together; the mean holds task 3, which ours leaves out where its training part "
                "is not there."
            ),
            about="babi[number=0,subset=all,train=0]",
        ),
    )
    axis = "task"
    needs_download = True
    data_sets = ("babi",)
    data_license = License("CC BY 3.0 (bAbI)", redistributable=True)

    def __init__(self, config: BabiConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        numbers = (config.number,) if config.number else SUBSETS[config.subset]
        table = load_babi(numbers, data_dir, train=config.train)
        self.notes["data"] = table.note
        there = {row["number"] for row in table.parts["train"]}
        absent = [number for number in numbers if number not in there]
        if not there:
            raise DataUnavailable(
                f"babi: there are no training questions of {absent}; choose another number, or "
                f"leave the data directory out and run `python -m bench data fetch babi`."
            )
        if absent:
            self.notes["left out"] = f"tasks without a training part here: {absent}"
        self.joined = config.joined
        self.words = _vocabulary(table.parts["train"])
        self._known: dict[str, list[int]] = {}
        parts = {
            "train": [row for row in table.parts["train"] if row["told"] % HELD],
            "validation": [row for row in table.parts["train"] if not row["told"] % HELD],
            "test": _first_of_each(table.parts["test"], sorted(there), config.test or None),
        }
        _refuse_empty(parts, config.train)
        self.note_fewer("train", config.train * len(there), len(table.parts["train"]))
        self.note_fewer("test", config.test * len(there), len(parts["test"]))
        seen = {_wording(row) for row in parts["train"]}
        self._rows: dict[str, list[Asked]] = {
            part: [self._encode(row, seen=_wording(row) in seen) for row in rows]
            for part, rows in parts.items()
        }
        self.notes["parts"] = parts_note(parts)
        self.notes["tasks"] = f"{len(there)} of 20 tasks: {', '.join(map(str, sorted(there)))}"
        self.notes[SEEN] = "; ".join(f"{part}: {self._repeats(part)}" for part in _ASKED)
        vocab = len(self.words)
        everything = [row for rows in self._rows.values() for row in rows]
        longest = max(sum(map(len, row.story)) + len(row.question) for row in everything)
        self.sizes = Sizes((vocab,) if config.joined else (vocab, vocab), vocab, longest)

    def rows(self, split: Split) -> Sequence[Asked]:
        """Questions of a split."""
        return self._rows[split]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """The common scores, and the error on questions whose wording is not in training."""
        right: dict[int, list[bool]] = {}
        for rows, answer in zip(self.in_batches(split), answers, strict=True):
            assert answer.predicted is not None, "answers are predicted under teacher forcing"
            good = (answer.predicted == answer.batch.targets)[:, 0].tolist()
            for row, one in zip(rows, good, strict=True):
                if not row.seen:
                    right.setdefault(row.number, []).append(one)
        found = super().score(split, answers)
        if right:
            errors = [good.count(False) / len(good) for good in right.values()]
            found.append(Scored(metric=UNSEEN_ERROR.name, value=sum(errors) / len(errors)))
        return found

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of questions of all tasks, stories of similar length together."""
        return question_epochs(self.rows("train"), batch_size, generator, self.joined)

    def examples(self) -> Batch:
        """A story written by us, in the words of the first task."""
        story = "mary went to the kitchen . john went to the garden . mary went to the office ."
        return self.written(
            (
                (story, "where is mary ?", "office", (2,)),
                (story, "where is john ?", "garden", (1,)),
            )
        )

    def _repeats(self, part: Split) -> str:
        """How many questions of each task training has too."""
        every, seen = Counter[int](), Counter[int]()
        for row in self.rows(part):
            every[row.number] += 1
            seen[row.number] += row.seen
        told = [f"{seen[n]} of {every[n]} of task {n}" for n in sorted(every) if seen[n]]
        return ", ".join(told) or "none"

    def _encode(self, row: Row, *, seen: bool) -> Asked:
        story = tuple(self._ids(sentence) for sentence in row["story"])
        answer = self.words.encode([row["answer"]])[0]
        asked = self._ids(row["question"])
        return Asked(story, asked, answer, row["supporting"], row["number"], seen)

    def _ids(self, text: str) -> list[int]:
        if text not in self._known:
            self._known[text] = self.words.encode(tokenize(text))
        return self._known[text]


def _refuse_empty(parts: Mapping[str, Sequence[Row]], train: int) -> None:
    """Refuse so few questions that nothing is left to train on or to validate with."""
    for part in ("train", "validation"):
        if not parts[part]:
            raise InvalidConfig(
                f"babi: train={train} leaves no question in {part}, because the first of every "
                f"{HELD} stories of a task is kept for validation; ask for more."
            )


def _vocabulary(rows: Sequence[Row]) -> Vocabulary:
    """Words of all stories and questions, and answers whole; what is repeated counts once."""
    told: dict[str, list[str]] = {}
    for row in rows:
        for text in (*row["story"], row["question"]):
            told.setdefault(text, tokenize(text))
    answers = {row["answer"]: [row["answer"]] for row in rows}
    return Vocabulary.count((*told.values(), *answers.values()))


def _first_of_each(rows: Sequence[Row], numbers: Sequence[int], count: int | None) -> list[Row]:
    """The first questions of some tasks, task by task; None for all of them."""
    found: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in rows:
        if row["number"] in found:
            found[row["number"]].append(row)
    return [row for mine in found.values() for row in mine[:count]]


def _wording(row: Row) -> tuple[tuple[str, ...], str]:
    """Text that a network reads for a question."""
    return row["story"], row["question"]
