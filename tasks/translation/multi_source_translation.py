"""Translation from two languages at once: a German and a French caption into an English one.

Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710; Libovický
& Helcl, 2017, https://arxiv.org/abs/1704.06567; in transformers Libovický, Helcl & Mareček, 2018,
https://arxiv.org/abs/1811.04716. Captions are those of Multi30k (Elliott et al., 2016,
https://aclanthology.org/W16-3210). `read` leaves one source out, for the best single source;
`shuffle` gives every example the second source of another one, in training and test, which keeps
the parameters of two sources and removes the information of the second one.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.data.corpus import Part
from tasks.metrics.text_scores import BLEU
from tasks.translation.multi30k_task import QUICK, Captions, Language


@dataclass(frozen=True, kw_only=True)
class MultiSourceTranslationConfig(Config):
    """Options of translation from two languages."""

    first: Language = "de"
    """Language of the first source."""
    second: Language = "fr"
    """Language of the second source."""
    target: Language = "en"
    """Language to translate into."""
    read: Literal["both", "first", "second"] = "both"
    """Which sources a network is given."""
    shuffle: bool = False
    """Whether the second source belongs to another example."""
    vocab: Annotated[int, IntRange(500, 16000, log=True)] = 1500
    """Subwords of each language."""
    lowercase: bool = True
    """Lower-case everything, references too."""
    validate: Annotated[int, Legal(1)] = 250
    """Sentences decoded at each validation."""
    test: Annotated[int, Legal(1)] = 1000
    """Sentences of the test (all 1000 of test_2016_flickr)."""
    train: Annotated[int, Legal(0)] = 0
    """Training rows to use; 0 for all 29000."""

    def __post_init__(self) -> None:
        """Check that the languages differ and that there is something to shuffle."""
        if len({self.first, self.second, self.target}) < 3:
            raise InvalidConfig(
                "multi_source_translation: first, second and target must be three languages, "
                f"got {self.first}, {self.second} and {self.target}."
            )
        if self.shuffle and self.read != "both":
            raise InvalidConfig(
                "multi_source_translation: shuffle exchanges the second source, "
                f"and read={self.read} leaves one out; use read=both."
            )

    @property
    def sources(self) -> tuple[Language, ...]:
        """Languages that are read."""
        both = {"first": (self.first,), "second": (self.second,)}
        return both.get(self.read, (self.first, self.second))


GERMAN = PublishedResult(
    what="one source, German, by a GRU with additive attention, 20.5 million parameters",
    metric=BLEU.name,
    value=28.3,
    text="Trevett, 2024, pytorch-seq2seq",
    url="https://github.com/bentrevett/pytorch-seq2seq",
    where="notebook 3",
    differs=(
        "512 units in each direction, 10 epochs. Words of spaCy that "
        "occur twice, not subwords, and BLEU on such words; lower-cased, as ours; all "
        "1000 sentences of the same test."
    ),
    about="multi_source_translation[first=de,lowercase=true,read=first,target=en]",
)


@register(
    "task",
    "multi_source_translation",
    config=MultiSourceTranslationConfig,
    citation=Citation(text="Zoph & Knight, 2016", url="https://arxiv.org/abs/1601.00710"),
)
class MultiSourceTranslation(Captions):
    """The same caption in two languages, translated into a third."""

    family = "multi-source translation"
    comparison = (
        Entry(variant="multi_source"),
        Entry(variant="multi_source_flat"),
        Entry(variant="multi_source_hierarchical"),
        Entry(variant="none_state"),
        Entry(variant="scaled_dot", task="multi_source_translation[read=first]"),
        Entry(variant="scaled_dot", task="multi_source_translation[read=second]"),
        Entry(variant="scaled_dot", task="multi_source_translation[shuffle=true]"),
        Entry(
            variant="scaled_dot",
            backbone="transformer_seq2seq[width=96,layers=1,heads=4,combiner=serial]",
        ),
        Entry(
            variant="scaled_dot",
            backbone="transformer_seq2seq[width=96,layers=1,heads=4]",
            task="multi_source_translation[read=second]",
        ),
    )
    published_results = (
        replace(
            GERMAN,
            differs=f"Reads no French. {GERMAN.differs}",
            about="multi_source_translation[first=de,lowercase=true,read=both,target=en]",
        ),
        GERMAN,
    )
    ablated_inputs = ("read", "shuffle")
    capabilities = frozenset({"two_sources"})
    presets = {
        "smoke": TaskPreset(
            options="multi_source_translation[train=400,validate=16,test=32,vocab=500]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=3.0,
        ),
        "quick": TaskPreset(
            options="multi_source_translation[validate=64,test=250]",
            backbone=f"rnn_seq2seq[{QUICK}]",
            protocol="adam[steps=700,batch=32,evaluate_every=350]",
            seconds=23.7,
        ),
        "standard": TaskPreset(
            options="multi_source_translation[vocab=3000]",
            backbone="rnn_seq2seq[hidden=256,embedding=192,dropout=0.2,projection=bfloat16]",
            protocol="adam[lr=0.002,steps=100000,cpu_seconds=240,batch=128,evaluate_every=113]",
            seconds=280.0,
        ),
    }

    def __init__(
        self, config: MultiSourceTranslationConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        self.config = config
        super().__init__(config, seed, data_dir, sources=config.sources, target=config.target)

    def _encode(self, part: Part, count: int) -> list[tuple[list[int], ...]]:
        rows = super()._encode(part, count)
        if not self.config.shuffle:
            return rows
        return [
            (first, rows[other][1], target)
            for (first, _, target), other in zip(rows, derangement(len(rows)), strict=True)
        ]


def derangement(count: int) -> list[int]:
    """Another row for each row, the same one in every run; a single row keeps its own.

    >>> derangement(4)
    [1, 2, 3, 0]
    """
    # captions of neighboring rows are of unrelated images, so the next row is as good as any
    return [(place + 1) % count for place in range(count)]
