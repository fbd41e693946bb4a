"""Translation of image captions: Multi30k, real sentences at a size that a laptop can train.

Elliott et al., 2016, "Multi30K: multilingual English-German image descriptions",
https://aclanthology.org/W16-3210. The scores are BLEU and chrF of sacreBLEU, with their signatures,
and repeated and omitted words. The quick size decodes 250 of the 1000 test sentences, the standard
size all of them. The quick size reads bare embeddings with learned positions: attention over such
states is learned within seconds, over recurrent ones (an entry of the comparison) within minutes.
For generated strings see `transduction`.
"""

from dataclasses import dataclass
from pathlib import Path

from bench.api.comparison import Entry, PublishedResult, entries
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.metrics.text_scores import BLEU
from tasks.translation.multi30k_task import QUICK, Captions, OneWayConfig

LSTM = (
    "rnn_seq2seq[hidden=128,embedding=128,projection=bfloat16,encoder=birnn[cell=lstm],"
    "decoder=luong[cell=lstm]]"
)
"""Recurrent in source and target, both with cells of memory."""
TRANSFORMER = "transformer_seq2seq[width=128,layers=1,heads=4]"
DEEP = "transformer_seq2seq[width=128,layers=3,heads=4,dropout=0.2]"
"""The transformer of the preset `flagship`. One of width 256 trains 2.6 times as long. Where a
processor has no instructions for bfloat16, rounding its products takes 1.3 times as long."""
ATTENTIONS = (
    "none_state",
    "dot",
    "general",
    "additive",
    "location_aware",
    "coverage_eq1",
    "luong_local_p",
)
"""What the recurrent decoder of the preset `flagship` reads the source by."""
POSITIONS = ("uniform", "scaled_dot", "sinusoid", "learned", "shaw_rpr", "rope", "t5_bias")
"""What tells the words of the source apart in the encoder of the transformer; the first two do
not."""


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(OneWayConfig):
    """Options of caption translation."""


@register(
    "task",
    "translation",
    config=TranslationConfig,
    citation=Citation(text="Elliott et al., 2016", url="https://aclanthology.org/W16-3210"),
)
class Translation(Captions):
    """Multi30k captions, byte-pair encoded; greedy decoding, corpus BLEU."""

    family = "translation"
    comparison = (
        Entry(variant="additive"),
        Entry(variant="bahdanau"),
        Entry(variant="luong_global"),
        Entry(variant="luong_local_p"),
        Entry(variant="none_state"),
        Entry(variant="scaled_dot", backbone=f"rnn_seq2seq[{QUICK},search=beam]"),
        Entry(variant="scaled_dot", backbone=LSTM),
        Entry(variant="uniform", backbone=LSTM),
        Entry(variant="scaled_dot", backbone=TRANSFORMER),
        Entry(variant="uniform", backbone=TRANSFORMER),
        Entry(variant="shaw_rpr", backbone=TRANSFORMER, slot="self"),
    )
    published_results = (
        PublishedResult(
            what="GRU without attention, 14.2 million parameters",
            metric=BLEU.name,
            value=20.61,
            text="Trevett, 2024, pytorch-seq2seq",
            url="https://github.com/bentrevett/pytorch-seq2seq",
            where="notebook 2",
            differs=(
                "One state of 512 units read at every step, 10 epochs. Words of spaCy that "
                "occur twice, not subwords, and BLEU on such words; lower-cased, as ours; all "
                "1000 sentences of the same test."
            ),
            about="translation[lowercase=true,source=de,target=en]",
        ),
        PublishedResult(
            what="GRU with additive attention (Bahdanau et al.), 20.5 million parameters",
            metric=BLEU.name,
            value=28.3,
            text="Trevett, 2024, pytorch-seq2seq",
            url="https://github.com/bentrevett/pytorch-seq2seq",
            where="notebook 3",
            differs=(
                "512 units in each direction, 10 epochs. Words of spaCy that occur twice, not "
                "subwords, and BLEU on such words; lower-cased, as ours; all 1000 sentences of "
                "the same test."
            ),
            about="translation[lowercase=true,source=de,target=en]",
        ),
        PublishedResult(
            what="convolutions with attention (Gehring et al.), 37.4 million parameters",
            metric=BLEU.name,
            value=34.14,
            text="Trevett, 2024, pytorch-seq2seq",
            url="https://github.com/bentrevett/pytorch-seq2seq",
            where="legacy notebook 5",
            differs=(
                "Ten layers of 512 units, 10 epochs. Words of spaCy that occur twice, not "
                "subwords, and BLEU on such words; lower-cased, as ours; all 1000 sentences of "
                "the same test."
            ),
            about="translation[lowercase=true,source=de,target=en]",
        ),
        PublishedResult(
            what="transformer, 9.0 million parameters",
            metric=BLEU.name,
            value=36.52,
            text="Trevett, 2024, pytorch-seq2seq",
            url="https://github.com/bentrevett/pytorch-seq2seq",
            where="legacy notebook 6",
            differs=(
                "Three layers of 256 units and eight heads, 10 epochs. Words of spaCy that "
                "occur twice, not subwords, and BLEU on such words; lower-cased, as ours; all "
                "1000 sentences of the same test."
            ),
            about="translation[lowercase=true,source=de,target=en]",
        ),
    )
    # source and target ids mean different words, so there is nothing to copy
    capabilities = frozenset({"reversible_pairs"})
    presets = {
        "smoke": TaskPreset(
            options="translation[train=400,validate=16,test=32,vocab=500]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=3.0,
        ),
        "quick": TaskPreset(
            options="translation[vocab=1500,validate=64,test=250]",
            backbone=f"rnn_seq2seq[{QUICK}]",
            protocol="adam[steps=700,batch=32,evaluate_every=350]",
            seconds=22.0,
        ),
        "standard": TaskPreset(
            options="translation",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.2,projection=bfloat16]",
            protocol=(
                "adam[lr=0.002,warmup=0,steps=100000,cpu_seconds=240,batch=128,evaluate_every=113]"
            ),
            seconds=280.0,
            shared=True,
        ),
        # a validation after each reading of the 29000 pairs; rates are compared after six of them
        "flagship": TaskPreset(
            options="translation[validate=500]",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.4,precision=bfloat16,"
            "projection=bfloat16]",
            protocol=(
                "adam[lr=0.002,warmup=200,steps=12000,batch=128,evaluate_every=227,"
                "patience=2,halvings=2]"
            ),
            trial_steps=6 * 227,
            seconds=900.0,
            comparison=(
                *entries(*ATTENTIONS),
                *entries(*POSITIONS, backbone=DEEP, slot="self"),
            ),
        ),
    }

    def __init__(self, config: TranslationConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir, sources=(config.source,), target=config.target)
        self.config = config
