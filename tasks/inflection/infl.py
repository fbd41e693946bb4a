"""Inflection by invented rules: suffixes, vowel harmony, umlaut and a circumfix.

Four rules that are hard for a network that reads only from left to right: a suffix whose vowel
agrees with the last vowel of the stem, as in Finnish and Turkish; a change of that vowel, as in
German plurals; a prefix and a suffix, as in German participles; and a last letter that is dropped.
The language is invented, so that no word is known from elsewhere; short ones repeat. The setting is
that of Cotterell et al., 2017, https://aclanthology.org/K17-2001.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.drawing import shown_to_networks
from tasks.data.word_pairs import WordPair
from tasks.data.words import Vocabulary
from tasks.inflection.word_forms import Inflected, Inflection, rule_baselines, spelled

CONSONANTS = "bdfghklmnprstv"
BACK, FRONT = "aou", "äöü"
TAGS = (
    ("N", "LOC", "SG"),
    ("N", "LOC", "PL"),
    ("N", "NOM", "PL"),
    ("V", "PST"),
    ("V", "PTCP"),
)


@dataclass(frozen=True, kw_only=True)
class InflConfig(Config):
    """Options of inflection by rules."""

    syllables: int = 4
    """Syllables of a lemma at most; the least is two."""
    evaluate: int = 256
    """Words of validation and of test."""

    def __post_init__(self) -> None:
        """Check that there are words."""
        if self.syllables < 2 or self.evaluate < 1:
            raise InvalidConfig(
                f"infl: syllables >= 2 and evaluate >= 1, got {self.syllables} and {self.evaluate}."
            )


def inflect(lemma: str, tags: tuple[str, ...]) -> str:
    """Make the form.

    >>> inflect("talo", ("N", "LOC", "SG")), inflect("kyläs", ("N", "LOC", "PL"))
    ('talossa', 'kyläsissä')
    >>> inflect("garto", ("N", "NOM", "PL")), inflect("lakan", ("V", "PTCP"))
    ('gartöer', 'gelakat')
    """
    place = max(lemma.rfind(vowel) for vowel in BACK + FRONT)
    front = lemma[place] in FRONT
    ends = {
        ("N", "LOC", "SG"): "ssä" if front else "ssa",
        ("N", "LOC", "PL"): "issä" if front else "issa",
        ("V", "PST"): "tö" if front else "to",
    }
    if tags in ends:
        return lemma + ends[tags]
    if tags == ("N", "NOM", "PL"):
        changed = lemma[place] if front else FRONT[BACK.index(lemma[place])]
        return lemma[:place] + changed + lemma[place + 1 :] + "er"
    stem = lemma[:-1] if lemma[-1] in CONSONANTS else lemma
    return f"ge{stem}t"


@register(
    "task",
    "infl",
    config=InflConfig,
    citation=Citation(text="Cotterell et al., 2017", url="https://aclanthology.org/K17-2001"),
)
class RuleInflection(Inflection):
    """Invented lemmas under five sets of tags; the rules are those of `inflect`.

    >>> task = RuleInflection(InflConfig(evaluate=4), seed=0)
    >>> row = task.rows("test")[0]
    >>> inflect(row.lemma, row.tags) == row.form
    True
    """

    seen_in_training = (
        "At the quick size (seed 0) training has seen 9 of the 256 test words with their tags."
    )
    seen_under = {"syllables": 4, "evaluate": 256}
    presets = {
        "smoke": TaskPreset(
            options="infl[syllables=2,evaluate=24]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=20]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="infl",
            backbone="rnn_seq2seq[hidden=64,embedding=32]",
            protocol="adam[lr=0.004,steps=500,batch=64,evaluate_every=250]",
            seconds=8.7,
        ),
        "standard": TaskPreset(
            options="infl[syllables=6,evaluate=1000]",
            backbone="rnn_seq2seq[hidden=128,embedding=64]",
            protocol="adam[lr=0.002,steps=4000,batch=64,evaluate_every=500]",
            seconds=200.0,
        ),
    }

    def __init__(self, config: InflConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        letters = [*CONSONANTS, *BACK, *FRONT, "e", "i"]
        tags = sorted({f"+{tag}" for tags in TAGS for tag in tags})
        # three tags before the longest lemma, or `ge` and `t` around it
        longest = 3 * config.syllables + 4
        self.settle({}, Vocabulary([*letters, *tags]), longest)

    def rows(self, split: Split) -> list[Inflected]:
        """The words of validation or test."""
        return self._drawn(self.config.evaluate, self.seeded(split))

    def held(self, split: Split) -> list[WordPair]:
        """The same, spelled."""
        return [spelled(row) for row in self.rows(split)]

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """New words in every batch."""
        while True:
            yield self.batch(
                self.encode(spelled(row) for row in self._drawn(batch_size, generator))
            )

    def baselines(self) -> dict[str, float]:
        """Copying, and suffix rules counted on as many words as a network sees."""
        seen = self._drawn(shown_to_networks(type(self)), self.seeded(4))
        return dict(rule_baselines(seen, self.rows("test")))

    def examples(self) -> Batch:
        """The first words of the test."""
        return self.inflected(self.rows("test")[:3])

    def _drawn(self, count: int, generator: torch.Generator) -> list[Inflected]:
        draws = torch.rand(count, 2 + 3 * self.config.syllables, generator=generator).tolist()
        return [self._word(row) for row in draws]

    def _word(self, draws: list[float]) -> Inflected:
        """A word from numbers between 0 and 1: its tags, its length, then its syllables."""
        tags = TAGS[int(draws[0] * len(TAGS))]
        syllables = 2 + int(draws[1] * (self.config.syllables - 1))
        lemma = ""
        for syllable in range(syllables):
            one, two, three = draws[2 + 3 * syllable : 5 + 3 * syllable]
            vowels = BACK + FRONT
            lemma += CONSONANTS[int(one * len(CONSONANTS))] + vowels[int(two * len(vowels))]
            if three < 0.3:
                lemma += CONSONANTS[int(three / 0.3 * len(CONSONANTS))]
        return Inflected(lemma, tags, inflect(lemma, tags))
