"""Inflection of real words: SIGMORPHON 2017, English, German, Finnish and Turkish.

Cotterell et al., 2017, "CoNLL-SIGMORPHON 2017 shared task: universal morphological reinflection in
52 languages", https://aclanthology.org/K17-2001; one task of Yu et al., 2016, "Online segment to
segment neural transduction", https://arxiv.org/abs/1609.08194, and of Aharoni & Goldberg, 2017,
"Morphological inflection generation with hard monotonic attention",
https://arxiv.org/abs/1611.01487.

Deviations: tags come before the letters of the lemma, a space inside a word is a letter of its own,
and the presets smoke and quick evaluate on as many words as their options say, spread evenly over
validation and test. Training pairs that are also in those parts are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.batch import Batch
from bench.api.comparison import PublishedResult, entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.sigmorphon2017 import Language, Size, load_sigmorphon2017
from tasks.data.tables import Row
from tasks.data.word_pairs import WordPair, spread
from tasks.data.words import Vocabulary
from tasks.inflection.word_forms import Inflected, Inflection, rule_baselines, spelled
from tasks.metrics.accuracy import SEQUENCE_ACCURACY

# common words chosen by us; the forms are in any grammar
SHOWN: dict[Language, tuple[Inflected, ...]] = {
    "english": (
        Inflected("wonder", ("V", "V.PTCP", "PRS"), "wondering"),
        Inflected("carry", ("V", "3", "SG", "PRS"), "carries"),
    ),
    "german": (
        Inflected("lachen", ("V", "IND", "PST", "3", "SG"), "lachte"),
        Inflected("Garten", ("N", "NOM", "PL"), "Gärten"),
    ),
    "finnish": (
        Inflected("talo", ("N", "IN+ESS", "SG"), "talossa"),
        Inflected("kylä", ("N", "IN+ESS", "SG"), "kylässä"),
    ),
    "turkish": (
        Inflected("ev", ("N", "LOC", "PL"), "evlerde"),
        Inflected("okul", ("N", "LOC", "PL"), "okullarda"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class InflectionConfig(Config):
    """Options of inflection."""

    language: Language = "german"
    """Language of the words."""
    size: Size = "high"
    """Training pairs of the shared task: 100, 1000 or 10000."""
    train: int = 0
    """Training pairs to use, the first ones; 0 for all."""
    evaluate: Annotated[int, IntRange(1, 1000)] = 1000
    """Words of validation and of test, spread evenly; each has 1000."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if self.train < 0 or self.evaluate < 1:
            raise InvalidConfig(
                f"inflection: train >= 0 and evaluate >= 1, got {self.train} and {self.evaluate}."
            )


@register(
    "task",
    "inflection",
    config=InflectionConfig,
    citation=Citation(text="Cotterell et al., 2017", url="https://aclanthology.org/K17-2001"),
)
class RealInflection(Inflection):
    """A lemma and its tags to the inflected form, letter by letter."""

    published_results = (
        *(
            PublishedResult(
                what=f"baseline of the shared task, rules of prefixes and suffixes, {size}",
                metric=SEQUENCE_ACCURACY.name,
                value=value,
                text="Cotterell et al., 2017",
                url="https://github.com/sigmorphon/conll2017",
                where="baseline/baseline.py, run by us on the released test",
                differs="Non-neural; the same training pairs and all 1000 words of the test.",
                about=f"inflection[language=german,size={size}]",
            )
            for size, value in (("high", 0.824), ("medium", 0.721))
        ),
        *(
            PublishedResult(
                what=f"CLUZH of the shared task, an ensemble of 15 that copies and edits, {size}",
                metric=SEQUENCE_ACCURACY.name,
                value=value,
                text="Makarov & Clematide, 2018, released predictions",
                url=(
                    "https://github.com/ZurichNLP/"
                    "coling2018-neural-transition-based-morphology-test-data"
                ),
                where=f"data/sigmorphon2017/{size}/HAECM-E15, scored by us",
                differs=(
                    "Fifteen networks that vote, with beams; the same training pairs and all 1000 "
                    "words of the test."
                ),
                about=f"inflection[language=german,size={size}]",
            )
            for size, value in (("medium", 0.791), ("low", 0.671))
        ),
    )
    pipeline_check = (
        "At the quick size suffix rules counted in training are better than every network in "
        "every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="inflection[size=low,evaluate=24]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="inflection[evaluate=250]",
            backbone="rnn_seq2seq[hidden=96,embedding=48]",
            protocol="adam[lr=0.004,steps=600,batch=64,evaluate_every=300]",
            seconds=13.8,
        ),
        "standard": TaskPreset(
            options="inflection",
            backbone="rnn_seq2seq[hidden=192,embedding=96,dropout=0.2]",
            protocol="adam[lr=0.002,steps=6000,batch=64,evaluate_every=600]",
            seconds=500.0,
        ),
        "flagship": TaskPreset(
            options="inflection",
            backbone="rnn_seq2seq[hidden=128,embedding=64,dropout=0.3]",
            protocol=(
                "adam[lr=0.003,steps=12000,batch=64,evaluate_every=320,patience=4,halvings=2]"
            ),
            seconds=300.0,
            comparison=entries("additive", "raffel_monotonic", "ssnt", "hard_exact", "none_state"),
            evidence=True,
        ),
    }
    data_sets = ("sigmorphon2017",)
    needs_download = True
    data_license = License(
        "no license stated; from Wiktionary, CC BY-SA 3.0 (SIGMORPHON 2017)", redistributable=False
    )

    def __init__(self, config: InflectionConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        table = load_sigmorphon2017(config.language, config.size, data_dir)
        self.notes["data"] = table.note
        self.note_fewer("train", config.train, len(table.parts["train"]))
        count = config.train or len(table.parts["train"])
        held = [_inflected(table.parts[part]) for part in ("validation", "test")]
        for part, rows in zip(("validation", "test"), held, strict=True):
            self.note_fewer(part, config.evaluate, len(rows))
        seen = set(held[0] + held[1])
        train = [row for row in _inflected(table.parts["train"][:count]) if row not in seen]
        self.rows: dict[Split, list[Inflected]] = {
            "train": list(dict.fromkeys(train)),
            "validation": spread(held[0], config.evaluate),
            "test": spread(held[1], config.evaluate),
        }
        pairs: dict[Split, list[WordPair]] = {
            part: [spelled(row) for row in rows] for part, rows in self.rows.items()
        }
        words = [side for pair in pairs["train"] for side in pair]
        self.settle(pairs, Vocabulary.count(words), limit=f"inflection: train={config.train}")

    def baselines(self) -> dict[str, float]:
        """Copying, and rules counted in the training part."""
        return dict(rule_baselines(self.rows["train"], self.rows["test"]))

    def examples(self) -> Batch:
        """Two words of the language."""
        return self.inflected(SHOWN[self.config.language])


def _inflected(rows: Sequence[Row]) -> list[Inflected]:
    return [Inflected(row["lemma"], tuple(row["tags"].split(";")), row["form"]) for row in rows]
