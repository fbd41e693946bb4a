"""Incremental translation: output each word as soon as enough of the source has been read.

Gu et al., 2017, "Learning to translate in real-time with neural machine translation",
https://arxiv.org/abs/1610.00388; quality against average lagging as in Ma et al., 2019, "STACL",
https://arxiv.org/abs/1810.08398. The captions are those of Multi30k (Elliott et al., 2016,
https://aclanthology.org/W16-3210), and the encoder is online, so that no state knows a word that
has not come yet: bare embeddings with their positions in the quick size, a forward network in the
standard one. Delays are given for monotonic attention; attention to the whole sentence is compared
to show what waiting is worth. The monotone rules of `transduction` (`copy`, `dict`) show the same
mechanisms on generated strings, `ssnt` among them, whose product of all positions with the
vocabulary is too slow for captions.

Deviations: the summary of the source, which starts the decoder, knows the whole sentence, for every
mechanism alike, and delays count what attention reads. The two entries that stream have no summary:
they predict each word only from what they have read by then. Without attention (`none_state`) that
summary is all there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.answer import Answer
from bench.api.comparison import Entry
from bench.api.config import IntRange
from bench.api.metric import AVERAGE_LAGGING, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.metrics.delays import HEARD_BEFORE
from tasks.metrics.text_scores import BLEU
from tasks.translation.multi30k_task import QUICK, Captions, OneWayConfig

STREAMING = f"rnn_seq2seq[{QUICK},summaries=none,search=streaming]"
"""The network of the quick size, but its decoder gets no summary of what it has not read."""


@dataclass(frozen=True, kw_only=True)
class IncrementalTranslationConfig(OneWayConfig):
    """Options of incremental translation."""

    vocab: Annotated[int, IntRange(500, 16000, log=True)] = 1500
    """Subwords of each language."""


@register(
    "task",
    "incremental_translation",
    config=IncrementalTranslationConfig,
    citation=Citation(text="Ma et al., 2019", url="https://arxiv.org/abs/1810.08398"),
)
class IncrementalTranslation(Captions):
    """Captions under an online encoder: BLEU, and the delay of each word."""

    family = "incremental translation"
    # without streaming it trains networks of `translation` on the same sentences
    counts_with = "translation"
    comparison = (
        Entry(variant="additive"),
        Entry(variant="luong_local_m"),
        Entry(variant="raffel_monotonic"),
        Entry(variant="mocha"),
        Entry(variant="milk"),
        Entry(variant="none_state"),
        Entry(variant="raffel_monotonic", backbone=STREAMING),
        Entry(variant="mocha", backbone=STREAMING),
    )
    presets = {
        "smoke": TaskPreset(
            options="incremental_translation[train=400,validate=16,test=32,vocab=500]",
            backbone="rnn_seq2seq[hidden=32,embedding=16,encoder=uni_rnn]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=3.0,
        ),
        "quick": TaskPreset(
            options="incremental_translation[validate=64,test=250]",
            backbone=f"rnn_seq2seq[{QUICK}]",
            protocol="adam[steps=700,batch=32,evaluate_every=350]",
            seconds=17.7,
        ),
        "standard": TaskPreset(
            options="incremental_translation[vocab=3000]",
            backbone=(
                "rnn_seq2seq[hidden=256,embedding=192,dropout=0.2,projection=bfloat16,"
                "encoder=uni_rnn]"
            ),
            protocol="adam[lr=0.002,steps=100000,cpu_seconds=240,batch=128,evaluate_every=113]",
            seconds=280.0,
        ),
    }

    def __init__(
        self, config: IncrementalTranslationConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir, sources=(config.source,), target=config.target)
        self.config = config
        self.notes["caveat"] = HEARD_BEFORE

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Scores of translation, and BLEU at the position of its average lagging."""
        found = super().score(split, answers)
        plain = {scored.metric: scored.value for scored in found if not scored.axis}
        lagging = plain.get(AVERAGE_LAGGING.name)
        if lagging is not None and split == "test":
            value = plain[BLEU.name]
            axis = AVERAGE_LAGGING.name
            found.append(Scored(metric=BLEU.name, value=value, axis=axis, x=lagging))
        return found
