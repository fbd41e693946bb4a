"""Translation of captions whose words were linked by a statistical aligner, to teach attention.

Liu et al., 2016, "Neural machine translation with supervised attention",
https://arxiv.org/abs/1609.04186, section 4: links of a conventional aligner over the training pairs
are the targets of attention. The captions are those of Multi30k (Elliott et al., 2016,
https://aclanthology.org/W16-3210).

Deviations: IBM model 2 of NLTK in one direction, where the paper has GIZA++ in both and joins them;
subwords are linked, not words. Nobody has linked these captions by hand: links of validation and
test are the aligner's too, so that the alignment match says how far attention agrees with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Choices, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.ibm_alignments import UNLINKED, Model, Pair, ibm_links
from tasks.metrics.attention_scores import ALIGNMENT_MATCH
from tasks.metrics.translation_scores import TEXT_METRICS
from tasks.translation.multi30k_task import QUICK, Captions, OneWayConfig


@dataclass(frozen=True, kw_only=True)
class AlignedTranslationConfig(OneWayConfig):
    """Options of translation with links."""

    alignments: Annotated[Model, Choices(("ibm1", "ibm2"))] = "ibm2"
    """Model that links subwords, without positions (1) or with them (2)."""
    rounds: Annotated[int, IntRange(1, 10)] = 5
    """Rounds of expectation maximization."""

    def __post_init__(self) -> None:
        """Check the rounds."""
        super().__post_init__()
        if self.rounds < 1:
            raise InvalidConfig(
                f"aligned_translation: rounds must be at least 1, got {self.rounds}."
            )


@register(
    "task",
    "aligned_translation",
    config=AlignedTranslationConfig,
    citation=Citation(
        text="Liu et al., 2016", url="https://arxiv.org/abs/1609.04186", where="section 4"
    ),
)
class AlignedTranslation(Captions):
    """Multi30k captions with links; the ends of sentences are not linked."""

    family = "translation"
    metrics = (*TEXT_METRICS, ALIGNMENT_MATCH)
    capabilities = frozenset({"reversible_pairs", "gold_alignment"})
    comparison = (
        Entry(variant="additive"),
        Entry(variant="supervised_attention"),
        Entry(variant="supervised_attention[weight=0.1]"),
        Entry(variant="none_state"),
    )
    presets = {
        "smoke": TaskPreset(
            options="aligned_translation[train=200,validate=16,test=32,vocab=500,rounds=1]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=4.0,
        ),
        "quick": TaskPreset(
            options="aligned_translation[train=4000,vocab=1500,validate=64,test=250]",
            backbone=f"rnn_seq2seq[{QUICK}]",
            protocol="adam[steps=700,batch=32,evaluate_every=350]",
            seconds=60.0,
        ),
        "standard": TaskPreset(
            options="aligned_translation",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.2,projection=bfloat16]",
            protocol=(
                "adam[lr=0.002,warmup=0,steps=100000,cpu_seconds=240,batch=128,evaluate_every=113]"
            ),
            seconds=500.0,
        ),
    }

    def __init__(
        self, config: AlignedTranslationConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir, sources=(config.source,), target=config.target)
        self.config = config
        train = [_without_ends(row) for row in self.pairs]
        held_out = [
            _without_ends(row)
            for part, count in (
                (self.corpus.validation, config.validate),
                (self.corpus.test, config.test),
            )
            for row in self._encode(part, count)
        ]
        every = [*train, *held_out]
        found = ibm_links(train, every, model=config.alignments, rounds=config.rounds)
        # equal pairs have equal links, so a pair is address enough
        self.links = {
            (tuple(source), tuple(target)): places
            for (source, target), places in zip(every, found, strict=True)
        }
        self.notes["alignments"] = (
            f"IBM model {config.alignments[-1]} of NLTK, {config.rounds} rounds over "
            f"{len(train)} training pairs"
        )

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches, with their links."""
        for batch in super().training(batch_size, generator):
            yield self._with_links(batch)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Sentences of about equal length together, with the aligner's links."""
        return [self._with_links(batch) for batch in super().evaluation(split)]

    def _with_links(self, batch: Batch) -> Batch:
        """The same batch with a gold alignment, one source place a linked target."""
        source = batch.sources[0]
        real = torch.ones_like(source.tokens) > 0 if source.mask is None else source.mask
        gold = torch.zeros(*batch.targets.shape, source.tokens.shape[1])
        for row in range(len(gold)):
            read = source.tokens[row][real[row]].tolist()
            said = batch.targets[row][batch.mask[row]].tolist()
            for t, place in enumerate(self.links[tuple(read[:-1]), tuple(said[:-1])]):
                if place != UNLINKED:
                    gold[row, t, place] = 1.0
        return replace(batch, gold=gold)


def _without_ends(row: Sequence[list[int]]) -> Pair:
    """A source and its target without the ends of sentences."""
    source, target = row
    return source[:-1], target[:-1]
