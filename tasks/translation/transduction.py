"""Sequence transduction with gold alignments: copy, reverse, swap, dict, svo, fert.

Strings of random symbols are rewritten by a rule whose alignment is known, so that quality,
alignment and generalization beyond the training lengths can all be scored exactly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes
from bench.api.calibration import Setting
from bench.api.comparison import Entry, entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import Headline, beyond_training
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.string_baselines import COUNTED, string_baselines
from tasks.metrics.accuracy import (
    PREFIX_ACCURACY,
    SEQUENCE_ACCURACY,
    TOKEN_ACCURACY,
    constant_prefix,
    scores_by_length,
)
from tasks.metrics.attention_scores import (
    ALIGNMENT_ENTROPY,
    ALIGNMENT_MATCH,
    alignment_scores,
    selection_scores,
)
from tasks.metrics.delays import delay_scores
from tasks.translation.string_rules import BOS, EOS, FIRST, KINDS, PAD, Rule, rewrite

COPIERS = (
    "additive",
    "luong_local_p",
    "location_aware",
    "ntm_addressing",
    "coverage_eq1",
    "raffel_monotonic",
    "mma_h",
    "ssnt",
    "hard_exact",
)
"""What looks at content, at where attention was before, or walks forward."""


@dataclass(frozen=True, kw_only=True)
class TransductionConfig(Config):
    """Options of the transduction family."""

    rule: Rule = "reverse"
    """How the target follows from the source."""
    vocab: Annotated[int, IntRange(2, 1000)] = 10
    """Number of symbols."""
    min_length: int = 2
    """Shortest source in training (symbols)."""
    max_length: int = 8
    """Longest source in training (symbols)."""
    beyond: int = 16
    """Longest source in the length curve (symbols)."""
    between: int = 0
    """The other length beyond training (symbols); 0 for the middle of the way to the longest."""
    pairs: int = 0
    """Training pairs; 0 draws fresh ones without end."""
    evaluate: int = 256
    """Pairs of the validation split, and of each length of the test split.

    Validation also has half as many of each length beyond training."""
    decode: bool = False
    """Whether exact match is that of decoded sentences; greedy search decodes the same number."""

    def __post_init__(self) -> None:
        """Check the lengths."""
        if self.between and not self.max_length < self.between < self.beyond:
            raise InvalidConfig(
                "transduction: between lies between max_length and beyond, "
                f"got {self.max_length}, {self.between}, {self.beyond}."
            )
        if not 1 <= self.min_length <= self.max_length < self.beyond:
            raise InvalidConfig(
                "transduction: lengths must satisfy 1 <= min_length <= max_length < beyond, "
                f"got {self.min_length}, {self.max_length}, {self.beyond}."
            )
        if min(self.vocab, self.evaluate) < 1 or self.pairs < 0:
            raise InvalidConfig(
                "transduction: vocab and evaluate must be at least 1 and pairs at least 0, "
                f"got {self.vocab}, {self.evaluate}, {self.pairs}."
            )


@register(
    "task",
    "transduction",
    config=TransductionConfig,
    citation=Citation(
        text="Luong et al., 2016",
        url="https://arxiv.org/abs/1511.06114",
        where="in whose spirit the rules are",
    ),
)
class Transduction(Task):
    """Random strings rewritten by a rule with a known alignment.

    There are few strings of the shortest length, so training has seen those of the test. Lengths
    beyond the training range show whether the rule was learned.

    >>> task = Transduction(TransductionConfig(rule="reverse", evaluate=1), seed=0)
    >>> batch = task.evaluation("test")[-1]
    >>> source = batch.sources[0].tokens[0, :-1]
    >>> bool((batch.targets[0, :-1] == source.flip(0)).all())
    True
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        SEQUENCE_ACCURACY,
        TOKEN_ACCURACY,
        PREFIX_ACCURACY,
        ALIGNMENT_MATCH,
        ALIGNMENT_ENTROPY,
    )
    headline: ClassVar[Headline | None] = beyond_training(PREFIX_ACCURACY)
    named_by = ("rule",)
    seen_in_training = (
        "At the quick size (seed 0) training has seen all test strings of 2 symbols, of which "
        "there are only 100, 59 of 256 of 4 symbols, 1 of 256 of 6 and of 8, but none longer. "
        "A network may have memorized strings of the shortest length, but none beyond 8 symbols."
    )
    seen_under: ClassVar[Mapping[str, Any]] = {
        "vocab": 10,
        "min_length": 2,
        "max_length": 8,
        # of any `beyond`, for shorter strings are drawn first; with lengths of `flagship` training
        # is longer and sees more
        "between": 0,
        "pairs": 0,
        "evaluate": 256,
    }
    family = "string rewriting"
    comparison = (
        Entry(variant="additive"),
        Entry(variant="bahdanau"),
        Entry(variant="luong_global"),
        Entry(variant="luong_local_p"),
        Entry(variant="none_state"),
        # a monotone rule after an online encoder: incremental translation of strings
        *(
            Entry(
                variant=name,
                backbone="rnn_seq2seq[hidden=64,embedding=32,encoder=uni_rnn]",
                task="transduction[rule=dict]",
            )
            for name in ("uniform", "additive", "raffel_monotonic", "mocha", "ssnt")
        ),
    )
    capabilities = frozenset({"gold_alignment", "reversible_pairs", "source_tokens"})
    calibration: ClassVar[tuple[Setting, ...]] = (
        Setting(options="transduction", protocol="adam[cooldown=0.5,steps=350]"),
        Setting(options="transduction[beyond=12]", protocol="adam[cooldown=0.5,steps=350]"),
        Setting(options="transduction[beyond=10]", protocol="adam[cooldown=0.5,steps=350]"),
    )
    presets = {
        "smoke": TaskPreset(
            options="transduction[max_length=4,beyond=6,evaluate=32]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="transduction[max_length=8,beyond=16]",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[steps=600,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=4.0,
        ),
        "standard": TaskPreset(
            options="transduction[max_length=20,beyond=40,vocab=16]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=120.0,
        ),
        # four and eight times the longest string of training
        "flagship": TaskPreset(
            options="transduction[rule=copy,between=32,beyond=64]",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol=(
                "adam[steps=12000,batch=32,evaluate_every=300,patience=6,halvings=1,stop_at=0.999]"
            ),
            seconds=60.0,
            comparison=entries(*COPIERS),
        ),
    }
    ceiling = 1.0

    def __init__(self, config: TransductionConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.decodes = config.decode
        self.trained_to = self.trained_to_of(config)
        # the dictionary is part of the task, not of the run: all seeds translate alike
        table = torch.randperm(config.vocab, generator=torch.Generator().manual_seed(7)) + FIRST
        self.table = torch.cat((torch.arange(FIRST), table))
        grow = 3 if config.rule == "fert" else 1
        words = config.vocab + FIRST
        self.sizes = Sizes((words,), words, grow * config.beyond + 1)
        self.pool = self._symbols(config.pairs, self.seeded(1)) if config.pairs else None

    @classmethod
    def trained_to_of(cls, config: TransductionConfig) -> float:
        """The longest source of training."""
        return float(config.max_length)

    @classmethod
    def chance_of(cls, config: TransductionConfig) -> float:
        """The symbol that is written most often, for ever."""
        each = [index % KINDS if config.rule == "fert" else 1 for index in range(config.vocab)]
        heard = sum(count > 0 for count in each)
        tokens = [fmean(each) * length + 1 for length in cls._beyond(config)]
        return constant_prefix(1 / max(1, heard), tokens, max(each))

    @classmethod
    def rule_baseline_of(cls, config: TransductionConfig) -> str:
        """To copy the source, or to translate word for word by a dictionary that was counted."""
        return {"copy": "copy the source", "dict": "word for word"}.get(config.rule, "")

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh pairs, or the fixed ones in random order."""
        config = self.config
        while True:
            if self.pool is None:
                symbols, lengths = self._symbols(batch_size, generator)
            else:
                chosen = torch.randint(config.pairs, (batch_size,), generator=generator)
                symbols, lengths = self.pool[0][chosen], self.pool[1][chosen]
            yield self._rewritten(symbols[:, : int(lengths.max())], lengths)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation as in training, then lengths beyond if they rank; test one batch a length."""
        config = self.config
        generator = self.seeded(split)
        if split == "test":
            return [
                self._of_length(config.evaluate, length, generator)
                for length in self.test_lengths()
            ]
        symbols, lengths = self._symbols(config.evaluate, generator)
        rows = max(1, config.evaluate // 2)
        ranked = self.test_lengths() if self.headline else []
        beyond = [length for length in ranked if length > config.max_length]
        return [
            self._rewritten(symbols, lengths),
            *(self._of_length(rows, length, generator) for length in beyond),
        ]

    def test_lengths(self) -> list[int]:
        """Four lengths inside the training range and two beyond."""
        low, high = self.config.min_length, self.config.max_length
        inside = {round(low + (high - low) * share / 3) for share in range(4)}
        return sorted(inside | self._beyond(self.config))

    @staticmethod
    def _beyond(config: TransductionConfig) -> set[int]:
        """Lengths that no training string has; one alone where there is none between."""
        between = config.between or (config.max_length + config.beyond) // 2
        return {between, config.beyond} - {config.max_length}

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracies inside the training range, and a curve over all lengths."""
        found = scores_by_length(answers, self.config.max_length, prefix=True)
        found += alignment_scores(answers, self.config.max_length)
        found += selection_scores(answers, self.config.max_length)
        return found + delay_scores(answers, self.config.max_length)

    def baselines(self) -> Mapping[str, float]:
        """Correct prefix beyond the training range of strings that are counted or copied."""
        train = next(self.training(COUNTED, self.seeded(4)))
        return string_baselines(
            train, [batch for batch in self.evaluation("test") if not self._is_inside(batch)]
        )

    def examples(self) -> Batch:
        """First strings of the longest length inside the training range."""
        place = self.test_lengths().index(self.config.max_length)
        return self.evaluation("test")[place].first(2)

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples of the longest length inside the training range."""
        inside = [answer for answer in answers if self._is_inside(answer.batch)]
        found = []
        for row in range(min(count, len(inside[-1].batch.targets))) if inside else ():
            batch, said = inside[-1].batch, inside[-1].words()
            mask = batch.mask[row]
            found.append(
                Sample(
                    " ".join(self.tokens(batch.sources[0].tokens[row].tolist(), source=True)),
                    " ".join(self.tokens(batch.targets[row][mask].tolist(), source=False)),
                    " ".join(self.tokens(said[row], source=False)),
                )
            )
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Letters for sources, capitals for targets of rules that translate."""
        special = {PAD: "·", BOS: "<s>", EOS: "</s>", 3: "<unk>"}
        translated = not source and self.config.rule in ("dict", "swap", "svo", "fert")
        first = "A" if translated else "a"
        return [
            special.get(number)
            or (chr(ord(first) + number - FIRST) if number < 30 else str(number))
            for number in ids
        ]

    def _is_inside(self, batch: Batch) -> bool:
        """Whether a batch is no longer than those of training; its sources end with EOS."""
        return batch.sources[0].tokens.shape[1] <= self.config.max_length + 1

    def _symbols(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        config = self.config
        lengths = torch.randint(
            config.min_length, config.max_length + 1, (count,), generator=generator
        )
        shape = (count, config.max_length)
        symbols = torch.randint(FIRST, FIRST + config.vocab, shape, generator=generator)
        return symbols, lengths

    def _of_length(self, rows: int, length: int, generator: torch.Generator) -> Batch:
        """Random strings of one length."""
        symbols = torch.randint(
            FIRST, FIRST + self.config.vocab, (rows, length), generator=generator
        )
        return self._rewritten(symbols, torch.full((rows,), length))

    def _rewritten(self, symbols: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Batch:
        return rewrite(self.config.rule, symbols, lengths, self.table)
