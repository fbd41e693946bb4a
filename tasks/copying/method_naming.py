"""Names of functions from their bodies: extreme summaries, for which identifiers are copied.

Allamanis et al., 2016, "A convolutional attention network for extreme summarization of source
code", https://arxiv.org/abs/1602.03001. F1 is theirs (section 4): parts of the best name, order
aside, averaged over names; here the name is decoded greedily.

Deviations: Python's standard library instead of Java projects; comments, strings and marks are left
out of bodies, which are cut; whole modules go into one part, drawn by their name, so that no
function has a neighbor in another part; special methods such as `__init__` are left out; training
functions with the name and the body of an evaluated one are left out; smoke and quick evaluate on
as many as their options say, spread evenly.

Modules differ in size, so parts are no tenths of the functions: those of Python 3.11 have 8061, 766
and 2167. Its test has 839 functions of `tkinter`, which some installations of Python lack. The
notes count the parts of the Python at hand.
"""

import hashlib
import keyword
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange, default_of
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.copying.code_pairs import COPYING, FAMILY, baseline_scores
from tasks.data.stdlib_methods import Method, body_words, load_methods
from tasks.data.word_pairs import WordPair, WordPairs, spread
from tasks.data.words import Vocabulary
from tasks.metrics.accuracy import SEQUENCE_ACCURACY
from tasks.metrics.text_scores import (
    SUBTOKEN_F1,
    UNKNOWN_SAID,
    Words,
    exact_match,
    subtoken_f1,
    unknown_said,
)

OWN = (
    WordPair(tuple(body_words("return self.basket.apples", "get_apples")), ("get", "apples")),
    WordPair(tuple(body_words("self.basket = basket", "set_basket")), ("set", "basket")),
    WordPair(
        tuple(body_words("return isinstance(thing, Basket) and not thing.items", "is_empty")),
        ("is", "empty"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class MethodNamingConfig(Config):
    """Options of naming functions."""

    words: Annotated[int, IntRange(5, 200)] = 60
    """First sub-tokens of a body that are read."""
    vocab: Annotated[int, IntRange(50, 10000, log=True)] = 1000
    """Sub-tokens known, special ones included."""
    train: int = 0
    """Functions to train on, spread evenly; 0 for all."""
    evaluate: Annotated[int, IntRange(1, 5000)] = 1000
    """Functions of validation and of test at most, spread evenly."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.words, self.evaluate) < 1 or self.train < 0 or self.vocab < 5:
            raise InvalidConfig(
                "method_naming: words and evaluate >= 1, train >= 0 and vocab >= 5, got "
                f"{self.words}, {self.evaluate}, {self.train} and {self.vocab}."
            )


def part_of(module: str) -> Split:
    """The part that a module and all below it belong to, drawn by its name.

    Validation and test get about a tenth of the modules each, and other shares of the functions.
    """
    place = hashlib.sha256(module.encode()).digest()[0]
    return "test" if place < 26 else "validation" if place < 52 else "train"


@register(
    "task",
    "method_naming",
    config=MethodNamingConfig,
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 4"
    ),
)
class MethodNaming(WordPairs):
    """Sub-tokens of a body to those of the function's name.

    >>> part_of("argparse") == part_of("argparse")
    True
    """

    metrics = (SUBTOKEN_F1, SEQUENCE_ACCURACY, UNKNOWN_SAID)
    family = FAMILY
    pipeline_check = (
        "At the quick size no network is better in every seed than copying the source: F1 of "
        "sub-tokens is 0.09 for the best network, and 0.08 for copying."
    )
    # a third of the parts of names are in the body, so pointing alone can score here; in `oov_copy`
    # it could output no known word, and in `django` no mark
    comparison = (*COPYING, Entry(variant="pointer_net"))
    presets = {
        "smoke": TaskPreset(
            options="method_naming[words=15,vocab=100,train=60,evaluate=16]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=8,batch=8,evaluate_every=8]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="method_naming[words=40,vocab=1500,evaluate=300]",
            backbone="rnn_seq2seq[hidden=96,embedding=64]",
            protocol="adam[lr=0.004,steps=800,batch=32,evaluate_every=400]",
            seconds=13.1,
        ),
        "standard": TaskPreset(
            options="method_naming[words=80,vocab=2000]",
            backbone="rnn_seq2seq[hidden=192,embedding=128,dropout=0.3]",
            protocol="adam[lr=0.001,steps=5000,batch=32,evaluate_every=500]",
            seconds=600.0,
        ),
    }
    data_license = License(
        "PSF-2.0, the library of the interpreter that runs this", redistributable=True
    )
    chance = 0.0
    ceiling = 1.0

    def __init__(self, config: MethodNamingConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        methods = load_methods()
        self.notes["data"] = methods.note
        rows: dict[Split, list[WordPair]] = {"train": [], "validation": [], "test": []}
        modules: dict[Split, Counter[str]] = {part: Counter() for part in rows}
        for method in methods.rows:
            part = part_of(method.module)
            rows[part].append(self._pair(method))
            modules[part][method.module] += 1
        self.notes["functions"] = ", ".join(map(_counted, modules.items()))
        held = {*rows["validation"], *rows["test"]}
        train = [pair for pair in dict.fromkeys(rows["train"]) if pair not in held]
        rows["train"] = train
        counts = {"train": config.train, "validation": config.evaluate, "test": config.evaluate}
        # validation has no 1000 functions, so the default asks for at most as many
        usual = default_of(MethodNamingConfig, "evaluate")
        most = 0 if config.evaluate == usual else config.evaluate
        asked = {"train": config.train, "validation": most, "test": most}
        pairs: dict[Split, list[WordPair]] = {}
        for part, found in rows.items():
            self.note_fewer(part, asked[part], len(found))
            pairs[part] = spread(found, counts[part])
        sides = [side for pair in pairs["train"] for side in (pair.source, pair.target)]
        vocabulary = Vocabulary.count(sides, config.vocab)
        self.settle(pairs, vocabulary, limit=f"method_naming: words={config.words}")

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """F1 of sub-tokens, exact match, and unknown words of the greedy output."""
        said, references, _ = zip(*self.said(answers), strict=True)
        return [
            Scored(metric=SUBTOKEN_F1.name, value=subtoken_f1(said, references)),
            Scored(metric=SEQUENCE_ACCURACY.name, value=exact_match(said, references)),
            *unknown_said(said, references, self.knows),
        ]

    def baselines(self) -> dict[str, float]:
        """The commonest name, two frequent words of the body, and the name of the nearest body."""
        train, test = self.pairs["train"], self.pairs["test"]
        copied = [_frequent(pair.source) for pair in test]
        return baseline_scores(train, test, copied, subtoken_f1)

    def examples(self) -> Batch:
        """Three functions written by us."""
        return self.show(OWN)

    def _pair(self, method: Method) -> WordPair:
        return WordPair(method.body[: self.config.words], method.name)


def _counted(part: tuple[Split, Counter[str]]) -> str:
    """Functions of a part and of its largest module.

    >>> _counted(("test", Counter(json=3, tkinter=5)))
    'test 8 (tkinter 5)'
    """
    name, modules = part
    largest = "".join(f" ({module} {count})" for module, count in modules.most_common(1))
    return f"{name} {modules.total()}{largest}"


def _frequent(body: Words, count: int = 2) -> list[str]:
    """The words of a body that occur most often, without those of the language."""
    words = Counter(w for w in body if not keyword.iskeyword(w) and w != "self" and w[0] != "<")
    return [word for word, _ in words.most_common(count)]
