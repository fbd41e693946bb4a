"""The next word of an encyclopedia, after training on the validation part of WikiText-2, or on all.

Merity et al., 2017, "Pointer sentinel mixture models", https://arxiv.org/abs/1609.07843, section
4.2. Large files are not part of the directory, so by default this is not WikiText-2: training uses
the first nine tenths of its validation part (about 0.2 million words) and validation the last
tenth; the test is the beginning of its test part. The vocabulary is counted in the training part
and cut to its most frequent words; the others are `<unk>`, as in the data. Perplexities are
therefore lower than with the whole vocabulary, and not comparable with published ones. The hub copy
has the same validation and test, so that numbers of either are the same.

`full=true` is WikiText-2 itself, in its own three parts (about 2 million words to train on), for
which `python -m bench data fetch wikitext2` is needed. A comparison with published numbers needs
the whole vocabulary too (33278 words of the training part, `vocab=40000`) and the whole test; and
windows begin with nothing before them here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from bench.api.comparison import PublishedResult
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.corpus import parts_note
from tasks.data.paths import may_lack
from tasks.data.wikitext2 import NAME, load_wikitext2
from tasks.data.words import EOS, SPECIAL_WORDS, Vocabulary
from tasks.language_modeling.language_model import (
    PERPLEXITY,
    RARE_PERPLEXITY,
    LanguageConfig,
    LanguageModeling,
)
from tasks.language_modeling.ngrams import Ids
from tasks.modern import texts

DIFFERS = (
    "All 33278 words, as with `vocab=40000` here; the whole test, and the state is carried along "
    "it, where ours reads its first windows with nothing before them; 750 epochs, with "
    "dropout of weights and averaged weights."
)


@dataclass(frozen=True, kw_only=True)
class WikiTextConfig(LanguageConfig):
    """Options of the small WikiText."""

    vocab: Annotated[int, IntRange(100, 16000, log=True)] = 4000
    """Most frequent words of the training part, special ones included."""
    full: bool = False
    """Whether to train on the whole training part of WikiText-2, as fetched from the hub."""

    def __post_init__(self) -> None:
        """Check that there are words."""
        super().__post_init__()
        if self.vocab <= len(SPECIAL_WORDS):
            raise InvalidConfig(
                f"wikitext2_mini: vocab must be more than {len(SPECIAL_WORDS)}, got {self.vocab}."
            )


@register(
    "task",
    "wikitext2_mini",
    config=WikiTextConfig,
    citation=Citation(
        text="Merity et al., 2017", url="https://arxiv.org/abs/1609.07843", where="section 4.2"
    ),
)
class WikiText2Mini(LanguageModeling):
    """Words of articles, perplexity; every line ends in `</s>`."""

    metrics = (PERPLEXITY, RARE_PERPLEXITY)
    published_results = (
        PublishedResult(
            what="AWD-LSTM, three layers, 33 million parameters",
            metric=PERPLEXITY.name,
            value=65.8,
            text="Merity et al., 2017, as listed by NLP-progress",
            url="https://arxiv.org/abs/1708.02182",
            where="NLP-progress, language modeling, WikiText-2, test",
            differs=DIFFERS,
            about="wikitext2_mini[full=true,vocab=40000]",
        ),
        PublishedResult(
            what="AWD-LSTM with a continuous cache pointer, 33 million parameters",
            metric=PERPLEXITY.name,
            value=52.0,
            text="Merity et al., 2017, as listed by NLP-progress",
            url="https://arxiv.org/abs/1708.02182",
            where="NLP-progress, language modeling, WikiText-2, test",
            differs=DIFFERS,
            about="wikitext2_mini[full=true,vocab=40000]",
        ),
    )
    pipeline_check_over = {
        "rnn_decoder": (
            "At the quick size interpolated trigrams predict words better than every recurrent "
            "network in every seed (a mean perplexity of 44.5, the best network has 81.8)."
        )
    }
    presets = {
        "smoke": TaskPreset(
            options="wikitext2_mini[window=32,validate=4,test=8,common=4,vocab=500]",
            backbone="transformer_decoder[width=32,layers=1,heads=2]",
            protocol="adam[steps=10,batch=8,evaluate_every=5]",
            seconds=1.8,
        ),
        "quick": TaskPreset(
            options="wikitext2_mini[window=64,vocab=2000]",
            backbone="transformer_decoder[width=64,layers=2,heads=2]",
            protocol="adam[lr=0.005,steps=400,batch=8,evaluate_every=200]",
            seconds=11.5,
        ),
        "standard": TaskPreset(
            options="wikitext2_mini[window=128,validate=160,test=400,vocab=8000]",
            backbone="transformer_decoder[width=128,layers=2,dropout=0.3]",
            protocol="adam[lr=0.002,steps=1500,batch=32,evaluate_every=150]",
            seconds=1500.0,
        ),
        "modern": TaskPreset(
            options="wikitext2_mini[window=64,vocab=2000]",
            backbone="transformer_decoder[width=64,layers=2,heads=4]",
            protocol="adam[lr=0.003,steps=400,batch=8,evaluate_every=200]",
            seconds=14.0,
            comparison=texts("width=64,layers=2,heads=4"),
        ),
    }
    needs_download = True
    data_sets = (NAME,)
    data_license = License("CC BY-SA, Wikipedia", redistributable=True)
    unit = " "
    config: WikiTextConfig
    writes = (
        "the castle was built in 1850 . the castle was sold to the bishop , and the bishop of the "
        "castle",
        "the storm moved north . on 12 october the storm became a hurricane and the hurricane",
    )

    def __init__(self, config: WikiTextConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        table = load_wikitext2(data_dir, whole=config.full)
        self.notes["data"] = table.note
        rest = [_words(row["text"]) for row in table.parts["validation"]]
        test = [_words(row["text"]) for row in table.parts["test"]]
        if config.full:
            train = [_words(row["text"]) for row in table.parts["train"]]
        else:
            train, rest = rest[: len(rest) * 9 // 10], rest[len(rest) * 9 // 10 :]
        self.notes["parts"] = parts_note({"train": train, "validation": rest, "test": test})
        self.words = Vocabulary.count(train, config.vocab)
        counted = Counter(word for line in train for word in line)
        if config.full:
            self.notes["name"] = "WikiText-2 in its own parts, not the mini set"
            self.notes["vocabulary"] = f"{len(self.words)} of {len(counted)} words of training"
        ranked = sorted(counted, key=lambda word: (-counted[word], word))
        self.frequent = frozenset(self.words.encode(ranked[: config.common]))
        ids: dict[Split, Ids] = {
            "train": self._ids(train),
            "validation": self._ids(rest),
            "test": self._ids(test),
        }
        self.start(ids, len(self.words))

    @classmethod
    def needs_of(cls, config: WikiTextConfig) -> Mapping[str, str]:
        """The training part, which a data directory may lack."""
        return {NAME: may_lack(NAME)} if config.full else {}

    def rare_repeats(self, row: Sequence[int]) -> list[bool]:
        """Words that are known, not frequent in training, and were there before."""
        found, seen = [], set[int]()
        for number in row:
            rare = number >= len(SPECIAL_WORDS) and number not in self.frequent
            found.append(rare and number in seen)
            seen.add(number)
        return found

    def encode(self, text: str) -> list[int]:
        """Ids of words between spaces."""
        return self.words.encode(text.split())

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words."""
        return self.words.decode(ids)

    def _ids(self, lines: Sequence[Sequence[str]]) -> Ids:
        return np.asarray([n for line in lines for n in self.words.encode(line)], dtype=np.int64)


def _words(line: str) -> list[str]:
    """Words of a line as they are in the file, and its end."""
    return [*line.split(), SPECIAL_WORDS[EOS]]
