"""Links between the words of sentence pairs, by IBM models 1 and 2 of NLTK.

Brown et al., 1993, "The mathematics of statistical machine translation: parameter estimation",
https://aclanthology.org/J93-2003, sections 4.2 and 4.3. Counting goes pair by pair in Python,
minutes for tens of thousands of pairs; what was found is kept in the cache.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from bench.api.errors import DataUnavailable
from tasks.data.derived import Arrays, kept_arrays, pack, unpack

Model = Literal["ibm1", "ibm2"]
Pair = tuple[Sequence[int], Sequence[int]]
"""Ids of a source and of a target, without their ends."""

UNLINKED = -1
REVISION = 1
"""Raised when the same pairs get other links."""


@runtime_checkable
class Tables(Protocol):
    """What NLTK has estimated."""

    translation_table: Mapping[int, Mapping[int | None, float]]
    """Probability of a target word beside a source word; None is the null word."""
    alignment_table: Mapping[int, Mapping[int, Mapping[int, Mapping[int, float]]]]
    """Probability of a source place at a target place, both from one, and both lengths; place 0 is
    the null word. Model 1 has none."""


def ibm_links(
    train: Sequence[Pair],
    asked: Sequence[Pair],
    *,
    model: Model,
    rounds: int,
    cache_dir: Path | None = None,
) -> list[list[int]]:
    """Place of the source word of every target word, -1 for the null word.

    Args:
        train: Pairs from which the model is estimated.
        asked: Pairs to link.
        model: Translation probabilities alone, or positions too.
        rounds: Of expectation maximization; model 2 starts from twice as many of model 1.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: NLTK is not installed.
    """
    try:
        release = version("nltk")
    except PackageNotFoundError:
        raise DataUnavailable(
            "alignments by IBM models need NLTK; install it with "
            "`pip install 'attention-bench[alignments]'`."
        ) from None
    depends = {
        "pairs": _digest((train, asked)),
        "model": model,
        "rounds": rounds,
        "nltk": release,
        "revision": REVISION,
    }

    def make() -> Arrays:
        return pack(_linked(train, asked, model, rounds))

    return unpack(kept_arrays("alignments", depends, make, cache_dir=cache_dir))


def _linked(
    train: Sequence[Pair], asked: Sequence[Pair], model: Model, rounds: int
) -> list[list[int]]:
    """Estimate, then choose."""
    from nltk.translate import AlignedSent, IBMModel1, IBMModel2  # noqa: PLC0415 - an extra

    pairs = [AlignedSent(list(target), list(source)) for source, target in train if source]
    made: Tables = IBMModel1(pairs, rounds) if model == "ibm1" else IBMModel2(pairs, rounds)
    return [best_links(made, source, target, positions=model == "ibm2") for source, target in asked]


def best_links(
    tables: Tables, source: Sequence[int], target: Sequence[int], *, positions: bool
) -> list[int]:
    """The likeliest source place of each target word; of places that tie, the first.

    Under two lengths that training has not seen together, all places are equally likely.
    """
    length, said = len(source), len(target)
    words: list[int | None] = [None, *source]
    found = []
    for j, word in enumerate(target, 1):
        chances = [
            tables.translation_table[word][other]
            * (tables.alignment_table[i][j][length][said] if positions else 1.0)
            for i, other in enumerate(words)
        ]
        found.append(chances.index(max(chances)) - 1)
    return found


def _digest(pairs: tuple[Sequence[Pair], Sequence[Pair]]) -> str:
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
