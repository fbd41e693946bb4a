"""Supervised attention on generated strings, by gold links or by links of which some are wrong.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186; Mi et al., 2016, https://arxiv.org/abs/1608.00112, section 5,
train on links of an aligner, which makes errors. The strings are those of `transduction`; by
default neighbors are swapped, which attention learns slowly without supervision. Every word of
the target has a link; those of the test are always right. On real sentences:
`supervised_alignment`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import FloatRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.alignment.aligned_text import teachers
from tasks.alignment.string_alignment import StringAlignment, StringAlignmentConfig


@dataclass(frozen=True, kw_only=True)
class TaughtStringsConfig(StringAlignmentConfig):
    """Options of supervised attention on strings."""

    rule: Literal["copy", "reverse", "swap", "dict", "svo", "fert"] = "swap"
    """How the target follows from the source."""
    noise: Annotated[float, FloatRange(0.0, 1.0)] = 0.0
    """Share of training links that point at a random source word."""

    def __post_init__(self) -> None:
        """Check the share."""
        super().__post_init__()
        if not 0 <= self.noise <= 1:
            raise InvalidConfig(f"taught_strings: noise is a share from 0 to 1, got {self.noise}.")


@register(
    "task",
    "taught_strings",
    config=TaughtStringsConfig,
    citation=Citation(text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186"),
)
class TaughtStrings(StringAlignment):
    """A rule to learn, with links to train on; error rate first, then exact match.

    Training has seen the shortest strings of the test, as in `transduction`; only the longest
    strings show whether the rule was learned.

    >>> task = TaughtStrings(TaughtStringsConfig(noise=1.0), seed=0)
    >>> batch = next(task.training(64, torch.Generator().manual_seed(0)))
    >>> clean = TaughtStrings(TaughtStringsConfig(), seed=0)
    >>> true = next(clean.training(64, torch.Generator().manual_seed(0)))
    >>> bool((batch.targets == true.targets).all()), bool((batch.gold == true.gold).all())
    (True, False)
    """

    family = "supervised attention"
    pipeline_check_over = {}
    comparison = teachers("taught_strings")
    presets = {
        "smoke": TaskPreset(
            options="taught_strings[max_length=4,beyond=6,evaluate=32]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="taught_strings[max_length=8,beyond=16]",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[steps=600,batch=32,evaluate_every=300]",
            seconds=6.0,
        ),
        "standard": TaskPreset(
            options="taught_strings[max_length=20,beyond=40,vocab=16]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300]",
            seconds=150.0,
        ),
    }

    def __init__(
        self, config: TaughtStringsConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.noise = config.noise

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Pairs of the rule; a share of their links points at random words of the source."""
        for batch in super().training(batch_size, generator):
            yield misled(batch, self.noise, generator) if self.noise else batch


def misled(batch: Batch, noise: float, generator: torch.Generator) -> Batch:
    """Point a share of the links of target words, not that of EOS, at random source words."""
    gold, text = batch.gold, batch.sources[0]
    assert gold is not None, "there are links to mislead"
    rows, steps, places = gold.shape
    real = torch.ones(rows, places, dtype=torch.bool) if text.mask is None else text.mask
    words = real.sum(1, keepdim=True) - 1
    drawn = (torch.rand(rows, steps, generator=generator) * words).long()
    lies = torch.rand(rows, steps, generator=generator) < noise
    lies &= torch.arange(steps) < batch.mask.sum(1, keepdim=True) - 1
    other = functional.one_hot(drawn, places).to(gold.dtype)
    return replace(batch, gold=torch.where(lies.unsqueeze(-1), other, gold))
