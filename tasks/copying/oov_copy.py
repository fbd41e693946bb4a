"""Translate known words by a dictionary and copy unknown ones: a closed vocabulary is not enough.

The setting of Gu et al., 2016, https://arxiv.org/abs/1603.06393 and See et al., 2017,
https://arxiv.org/abs/1704.04368, reduced to symbols: unknown words have ids of their own example
only, beyond the vocabulary, and appear as UNK to encoder and decoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.calibration import Setting
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import beyond_training
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.copying.code_pairs import COPYING, FAMILY
from tasks.data.string_baselines import COUNTED, string_baselines
from tasks.metrics.accuracy import (
    PREFIX_ACCURACY,
    SEQUENCE_ACCURACY,
    TOKEN_ACCURACY,
    constant_prefix,
    scores_by_length,
)
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores

PAD, BOS, EOS, UNK, FIRST = 0, 1, 2, 3, 4
OOV_ACCURACY = Metric(
    name="oov_accuracy",
    title="Accuracy on unknown words",
    unit="fraction of unknown words",
    low=0.0,
    high=1.0,
    better="higher",
)


@dataclass(frozen=True, kw_only=True)
class OovCopyConfig(Config):
    """Options of copying unknown words."""

    vocab: Annotated[int, IntRange(2, 1000)] = 10
    """Known words."""
    length: int = 6
    """Words of the longest sequence in training."""
    shortest: int = 0
    """Words of the shortest sequence in training; 0 where all have the longest length."""
    beyond: int = 12
    """Longest sequence in the length curve (words)."""
    unknown: Annotated[float, FloatRange(0.0, 1.0)] = 0.3
    """Share of words that are unknown."""
    evaluate: int = 256
    """Examples of validation, and of each length of the test.

    Validation also has half as many of each length beyond training."""
    decode: bool = False
    """Whether exact match is that of decoded sentences; greedy search decodes the same number."""

    def __post_init__(self) -> None:
        """Check the share and the lengths."""
        if not 0 <= self.unknown <= 1 or not 1 <= self.length < self.beyond:
            raise InvalidConfig(
                "oov_copy: 0 <= unknown <= 1 and 1 <= length < beyond, "
                f"got {self.unknown}, {self.length}, {self.beyond}."
            )
        if not 0 <= self.shortest <= self.length:
            raise InvalidConfig(
                f"oov_copy: 0 <= shortest <= length, got {self.shortest} and {self.length}."
            )
        if min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                f"oov_copy: vocab and evaluate must be at least 1, "
                f"got {self.vocab} and {self.evaluate}."
            )


@register(
    "task",
    "oov_copy",
    config=OovCopyConfig,
    citation=Citation(text="Gu et al., 2016", url="https://arxiv.org/abs/1603.06393"),
)
class OovCopy(Task):
    """Known words go through a dictionary, unknown ones are copied, order is kept.

    >>> task = OovCopy(OovCopyConfig(evaluate=64, unknown=0.5), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> unknown = batch.sources[0].tokens == 3
    >>> bool((batch.targets[unknown] == batch.extended[unknown]).all())
    True
    """

    metrics = (
        SEQUENCE_ACCURACY,
        OOV_ACCURACY,
        TOKEN_ACCURACY,
        PREFIX_ACCURACY,
        ALIGNMENT_MATCH,
        ALIGNMENT_ENTROPY,
    )
    headline = beyond_training(PREFIX_ACCURACY)
    capabilities = frozenset({"gold_alignment", "source_tokens"})
    seen_in_training = (
        "At the calibrated size (seed 0) training has seen 247 of the 256 test sources of 3 words, "
        "of which there are only 1331 if unknown words are one, but none of 6 or more. A network "
        "may have memorized strings of the shortest length, but no longer ones."
    )
    # of any `beyond`, for shorter strings are drawn first
    seen_under = {"vocab": 10, "length": 6, "shortest": 2, "unknown": 0.1, "evaluate": 256}
    family = FAMILY
    comparison = COPYING
    calibration = (
        Setting(options="oov_copy[shortest=2]", protocol="adam[cooldown=0.5]"),
        Setting(options="oov_copy[shortest=2,beyond=8]", protocol="adam[cooldown=0.5]"),
        Setting(options="oov_copy[shortest=2,beyond=8,unknown=0.1]", protocol="adam[cooldown=0.5]"),
    )
    presets = {
        "smoke": TaskPreset(
            options="oov_copy[length=4,beyond=6,evaluate=32]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="oov_copy[length=6,beyond=12]",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[steps=600,batch=32,evaluate_every=100,stop_at=0.98]",
            seconds=4.5,
        ),
        "standard": TaskPreset(
            options="oov_copy[length=12,beyond=24,vocab=50]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=120.0,
        ),
    }
    ceiling = 1.0

    def __init__(self, config: OovCopyConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.decodes = config.decode
        self.trained_to = self.trained_to_of(config)
        table = torch.randperm(config.vocab, generator=torch.Generator().manual_seed(7)) + FIRST
        self.table = torch.cat((torch.arange(FIRST), table))
        words = FIRST + config.vocab
        self.sizes = Sizes((words,), words, config.beyond + 1)

    @classmethod
    def trained_to_of(cls, config: OovCopyConfig) -> float:
        """The longest source of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: OovCopyConfig) -> float:
        """One known word, or one of the unknown ones, for ever."""
        lengths = cls._beyond(config)
        share = max((1 - config.unknown) / config.vocab, config.unknown / min(lengths))
        return constant_prefix(share, [length + 1.0 for length in lengths])

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh sequences; every batch has one length."""
        shortest, length = self.config.shortest, self.config.length
        while True:
            if shortest:
                length = int(
                    torch.randint(shortest, self.config.length + 1, (), generator=generator)
                )
            yield self._batch(batch_size, length, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation at the training length and beyond; test at a shorter length, too."""
        config = self.config
        generator = self.seeded(split)
        beyond = self._beyond(config)
        if split == "test":
            lengths = sorted({max(1, config.length // 2), config.length, *beyond})
            return [self._batch(config.evaluate, length, generator) for length in lengths]
        rows = max(1, config.evaluate // 2)
        return [
            self._batch(config.evaluate, config.length, generator),
            *(self._batch(rows, length, generator) for length in sorted(beyond)),
        ]

    @staticmethod
    def _beyond(config: OovCopyConfig) -> set[int]:
        """Lengths that no training sequence has; one alone where there is none between."""
        return {(config.length + config.beyond) // 2, config.beyond} - {config.length}

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Exact match, accuracy on unknown words, and a curve over lengths."""
        exact = self.config.length
        plain = [a for a in answers if a.batch.sources[0].tokens.shape[1] == exact + 1]
        found = scores_by_length(plain, exact, curve=False, prefix=True)
        found += alignment_scores(plain, exact)
        good = total = 0
        for answer in plain:
            if answer.predicted is None:
                continue
            unknown = (answer.batch.targets >= self.sizes.target_vocab) & answer.batch.mask
            good += int((answer.predicted == answer.batch.targets)[unknown].sum())
            total += int(unknown.sum())
        if total:
            found.append(Scored(metric=OOV_ACCURACY.name, value=good / total))
        if len(answers) > 1:
            curve = scores_by_length(answers, -1, prefix=True)
            found += [scored for scored in curve if scored.axis]
        return found

    def baselines(self) -> Mapping[str, float]:
        """Correct prefix beyond the training lengths of strings that are counted or copied."""
        train = self._batch(COUNTED, self.config.length, self.seeded(4))
        test = self.evaluation("test")
        longest = self.config.length + 1
        return string_baselines(train, [b for b in test if b.targets.shape[1] > longest])

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples."""
        batch, said = answers[0].batch, answers[0].words()
        # an encoder whose states are not words leaves no ids to copy
        source = batch.sources[0].tokens if batch.extended is None else batch.extended
        found = []
        for row in range(min(count, len(said))):
            shown = (source[row].tolist(), batch.targets[row].tolist(), said[row])
            texts = [
                " ".join(self.tokens(ids, source=index == 0)) for index, ids in enumerate(shown)
            ]
            found.append(Sample(*texts))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Small letters for source words, capitals for translations, NEW for unknown words."""
        first = "a" if source else "A"
        names = {PAD: "·", BOS: "<s>", EOS: "</s>", UNK: "<unk>"}
        known = self.sizes.target_vocab
        return [
            names.get(n)
            or (f"new{n - known}" if n >= known else f"{chr(ord(first) + (n - FIRST) % 26)}")
            for n in ids
        ]

    def _batch(self, rows: int, length: int, generator: torch.Generator) -> Batch:
        vocab = self.sizes.target_vocab
        words = torch.randint(FIRST, vocab, (rows, length), generator=generator)
        unknown = torch.rand(rows, length, generator=generator) < self.config.unknown
        # ids of unknown words come in an order that does not depend on their position
        order = torch.rand(rows, length, generator=generator).argsort(1)
        extended = torch.where(unknown, vocab + order, words)
        ends = torch.full((rows, 1), EOS)
        source = torch.cat((torch.where(unknown, UNK, words), ends), 1)
        extended = torch.cat((extended, ends), 1)
        known = self.table[source]
        targets = torch.where(extended >= vocab, extended, known)
        seen = torch.where(targets >= vocab, UNK, targets)
        inputs = torch.cat((torch.full((rows, 1), BOS), seen[:, :-1]), 1)
        return Batch(
            sources=(Text(source, None),),
            inputs=inputs,
            targets=targets,
            mask=torch.ones_like(targets, dtype=torch.bool),
            extended=extended,
            num_extra=length,
            gold=torch.eye(length + 1).expand(rows, -1, -1),
        )
