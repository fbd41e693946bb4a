"""Language modeling: windows of a text, likelihoods, and n-gram baselines.

A text is cut into windows that follow each other without a gap; each begins with an empty memory
and a first token, which is read and not predicted. Windows of the validation and of the test are
the first ones of their part, so that every mechanism answers the same tokens.

A rare repeat is a token that is not among the most frequent ones of the training part and has
occurred before in its window: what attention to the past can copy and a short memory cannot.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.diagnostics.diagnostic import COPYING, ROSTER
from tasks.language_modeling.ngrams import Ids, Ngrams

BITS = Metric(
    name="bits_per_character",
    title="Bits per character",
    unit="bits per character",
    low=0.0,
    high=None,
    better="lower",
    margin=0.05,
)
RARE_BITS = Metric(
    name="rare_repeat_bits_per_character",
    title="Bits per character of rare words that repeat",
    unit="bits per character",
    low=0.0,
    high=None,
    better="lower",
)
PERPLEXITY = Metric(
    name="perplexity",
    title="Perplexity",
    unit="perplexity of a token",
    low=1.0,
    high=None,
    better="lower",
    margin=2.0,
)
RARE_PERPLEXITY = Metric(
    name="rare_repeat_perplexity",
    title="Perplexity of rare tokens that repeat",
    unit="perplexity of a token",
    low=1.0,
    high=None,
    better="lower",
)
AN_LSTM = "rnn_decoder"
COMPARISON = (
    *ROSTER,
    *COPYING,
    Entry(variant="scaled_dot", backbone=AN_LSTM),
    Entry(variant="uniform", backbone=AN_LSTM),
    Entry(variant="last_state", backbone=AN_LSTM),
    *(replace(copying, backbone=AN_LSTM) for copying in COPYING),
)
"""Decoder-only variants, outputs that copy, and an LSTM: with attention to its past, with the
mean of its past, without attention, and with copying."""


@dataclass(frozen=True, kw_only=True)
class LanguageConfig(Config):
    """Options of every language modeling task."""

    window: Annotated[int, IntRange(16, 512, log=True)] = 128
    """Tokens that are read at once; nothing is remembered from one window to the next."""
    validate: int = 64
    """Windows of validation, the first ones of its part."""
    test: int = 128
    """Windows of the test, the first ones of its part."""
    common: int = 100
    """Most frequent words of the training part, which are never rare."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.window < 2 or min(self.validate, self.test) < 1 or self.common < 0:
            raise InvalidConfig(
                "language modeling: window must be at least 2, validate and test at least 1 and "
                f"common at least 0, got {self.window}, {self.validate}, {self.test}, "
                f"{self.common}."
            )


class LanguageModeling(Task):
    """Base: a subclass fills `parts` and defines a rare repeat."""

    family = "language modeling"
    comparison = COMPARISON
    needs_weights = False
    ranks_tokens = True
    writes: ClassVar[tuple[str, ...]]
    """Texts written by us, for the report."""
    unit: ClassVar[str]
    """What joins the tokens of a text: nothing for characters."""
    parts: Mapping[Split, Ids]
    config: LanguageConfig

    def start(self, parts: Mapping[Split, Ids], vocab: int) -> None:
        """Check the parts and note the sizes; a subclass calls this at the end of its making.

        Raises:
            InvalidConfig: A part is shorter than one window.
        """
        window = self.config.window
        for split, ids in parts.items():
            if len(ids) <= window:
                raise InvalidConfig(
                    f"language modeling: the {split} part has {len(ids)} tokens, no more than a "
                    f"window of {window}; give a smaller window."
                )
        self.parts = parts
        held: tuple[Split, ...] = ("validation", "test")
        for split in held:
            self.note_fewer(split, self._most(split), (len(parts[split]) - 1) // window)
        self.sizes = Sizes((), vocab, window)
        self._evaluation: dict[Split, list[Batch]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless batches of windows that begin anywhere."""
        ids, window = torch.from_numpy(self.parts["train"]), self.config.window
        span = torch.arange(window + 1)
        while True:
            starts = torch.randint(0, len(ids) - window, (batch_size, 1), generator=generator)
            yield _batch(ids[starts + span])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Windows one behind the other from the beginning of the part."""
        if split not in self._evaluation:
            rows = torch.from_numpy(self.windows(split))
            self._evaluation[split] = [_batch(part) for part in rows.split(32)]
        return self._evaluation[split]

    def windows(self, split: Split) -> npt.NDArray[np.int64]:
        """What is read and predicted of a split, N windows of one token more than is scored."""
        ids, window = self.parts[split], self.config.window
        count = min(self._most(split), (len(ids) - 1) // window)
        starts = np.arange(count)[:, None] * window
        found: npt.NDArray[np.int64] = ids[starts + np.arange(window + 1)]
        return found

    def rare_repeats(self, row: Sequence[int]) -> list[bool]:
        """Which tokens of a window are rare and have occurred in it before."""
        raise NotImplementedError

    def value(self, nats: float) -> float:
        """The first metric for a mean likelihood (nats per token)."""
        if self.metrics[0] is PERPLEXITY:
            return math.exp(min(nats, 700.0))
        return nats / math.log(2)

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """The likelihood of all tokens, and that of rare repeats, where there are any."""
        every, rare = [], []
        for answer in answers:
            assert answer.nll is not None, "tokens have likelihoods"
            every.append(answer.nll[answer.batch.mask])
            rare.append(answer.nll[self._rare(answer.batch)])
        found = []
        for metric, losses in zip(self.metrics, (torch.cat(every), torch.cat(rare)), strict=True):
            if len(losses):
                value = self.value(float(losses.double().mean()))
                found.append(Scored(metric=metric.name, value=value))
        return found

    def baselines(self) -> Mapping[str, float]:
        """Unigrams, and bigrams and trigrams interpolated, counted in the training part."""
        orders = {"unigram": 1, "bigram, interpolated": 2, "trigram, interpolated": 3}
        model = Ngrams(self.parts["train"], self.sizes.target_vocab)
        validation, test = self.windows("validation"), self.windows("test")
        return {name: self.value(model.nats(n, validation, test)) for name, n in orders.items()}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First windows: input, next tokens, likeliest next tokens."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None, "teacher-forced predictions are needed"
        shown = (batch.inputs, batch.targets, predicted)
        return [
            Sample(*(self.unit.join(self.tokens(ids[row].tolist(), source=False)) for ids in shown))
            for row in range(min(count, len(predicted)))
        ]

    def examples(self) -> Batch:
        """Lines written by us that repeat rare words."""
        rows = [self.encode(text)[: self.config.window + 1] for text in self.writes]
        width = max(len(row) for row in rows)
        padded = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        batch = _batch(padded)
        mask = torch.tensor([[place + 1 < len(row) for place in range(width - 1)] for row in rows])
        return Batch(
            sources=(),
            inputs=batch.inputs,
            targets=batch.targets,
            mask=mask,
            names=self.writes,
            references=self.writes,
        )

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        raise NotImplementedError

    def _most(self, split: Split) -> int:
        """Windows that the options ask for."""
        return self.config.test if split == "test" else self.config.validate

    def _rare(self, batch: Batch) -> Bool[Tensor, "B T"]:
        whole = torch.cat((batch.inputs[:, :1], batch.targets), 1).tolist()
        rows = [self.rare_repeats(row)[1:] for row in whole]
        return torch.tensor(rows) & batch.mask


def _batch(rows: Int[Tensor, "B M"]) -> Batch:
    inputs, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    mask = torch.ones_like(targets, dtype=torch.bool)
    return Batch(sources=(), inputs=inputs, targets=targets, mask=mask)
