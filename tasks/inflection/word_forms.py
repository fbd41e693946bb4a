"""Inflection tasks: spelling, scores and rule baselines."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.metric import Scored
from bench.api.task import Split
from tasks.data.word_pairs import WordPair, WordPairs
from tasks.metrics.accuracy import SEQUENCE_ACCURACY
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, alignment_scores
from tasks.metrics.text_scores import EDITS, edit_distance, exact_match

TRANSFORMER = "transformer_seq2seq[width=64,layers=1,heads=4]"
SPACE = "␣"
"""Replaces a space inside a word."""


class Inflected(NamedTuple):
    """A lemma, its tags in their order, and the inflected form."""

    lemma: str
    tags: tuple[str, ...]
    form: str


def spelled(row: Inflected) -> WordPair:
    """Spell tags first, so that a left-to-right encoder knows them at the first letter.

    >>> spelled(Inflected("go", ("V", "PST"), "went")).source
    ('+V', '+PST', 'g', 'o')
    """
    letters = row.lemma.replace(" ", SPACE), row.form.replace(" ", SPACE)
    return WordPair((*(f"+{tag}" for tag in row.tags), *letters[0]), tuple(letters[1]))


class Inflection(WordPairs):
    """Letters of a form from tags and the letters of a lemma; greedy decoding, exact match."""

    metrics = (SEQUENCE_ACCURACY, EDITS, ALIGNMENT_ENTROPY)
    family = "morphological inflection"
    comparison = (
        Entry(variant="additive"),
        Entry(variant="none_state"),
        Entry(variant="location_aware"),
        Entry(variant="raffel_monotonic"),
        Entry(variant="hard_exact"),
        Entry(variant="ssnt"),
        Entry(variant="pointer_generator"),
        # with a second layer it learns more slowly than these sizes have steps
        Entry(variant="scaled_dot", backbone=TRANSFORMER),
        Entry(variant="uniform", backbone=TRANSFORMER),
    )
    chance = 0.0
    ceiling = 1.0

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Exact match and edit distance of the greedy output."""
        said, references, _ = zip(*self.said(answers), strict=True)
        return [
            Scored(metric=SEQUENCE_ACCURACY.name, value=exact_match(said, references)),
            Scored(metric=EDITS.name, value=edit_distance(said, references)),
            *(s for s in alignment_scores(answers, self.sizes.max_length) if s.metric in ENTROPY),
        ]

    def inflected(self, rows: Sequence[Inflected]) -> Batch:
        """A batch with lemma and tags instead of names."""
        return self.show([spelled(row) for row in rows])


ENTROPY = {ALIGNMENT_ENTROPY.name}


def rule_baselines(train: Sequence[Inflected], test: Sequence[Inflected]) -> Mapping[str, float]:
    """Exact match of copying the lemma, and of changing its end as training did most often."""
    table = suffix_rules(train)
    return {
        "copy the lemma": sum(row.lemma == row.form for row in test) / len(test),
        "suffix rules": sum(apply_rules(table, row) == row.form for row in test) / len(test),
    }


Rules = Mapping[tuple[tuple[str, ...], str], Counter[str]]


def suffix_rules(rows: Sequence[Inflected], context: int = 4) -> Rules:
    """Count how ends of lemmas change, under each set of tags, with up to some letters before.

    The idea is that of the baseline of the shared task of 2017, without its prefixes and without
    its alignment: what follows the longest beginning that lemma and form share is the change.

    Args:
        rows: Of the training part.
        context: Largest number of letters before the change that a rule may depend on.
    """
    found: dict[tuple[tuple[str, ...], str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        shared = _shared(row.lemma, row.form)
        for start in range(max(0, shared - context), shared + 1):
            found[row.tags, row.lemma[start:]][row.form[start:]] += 1
    return found


def apply_rules(rules: Rules, row: Inflected) -> str:
    """Apply the most frequent change of the longest end that training saw; else copy.

    >>> seen = [Inflected("walk", ("V", "PST"), "walked"), Inflected("bake", ("V", "PST"), "baked")]
    >>> apply_rules(suffix_rules(seen), Inflected("talk", ("V", "PST"), ""))
    'talked'
    """
    for start in range(len(row.lemma) + 1):
        changes = rules.get((row.tags, row.lemma[start:]))
        if changes:
            best = min(changes, key=lambda end: (-changes[end], end))
            return row.lemma[:start] + best
    return row.lemma


def _shared(one: str, other: str) -> int:
    """Letters that both begin with."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length
