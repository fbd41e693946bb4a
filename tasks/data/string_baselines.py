"""Non-neural baselines of generated strings: counts."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from bench.api.batch import Batch
from tasks.copying.code_pairs import baseline_scores
from tasks.data.word_pairs import WordPair
from tasks.metrics.text_scores import correct_prefix

COUNTED = 512
"""Training strings that are counted."""


def most_frequent_answer(train: Batch, test: Batch) -> float:
    """Token accuracy of the answer that is most frequent in training."""
    most, _ = Counter(train.targets[train.mask].tolist()).most_common(1)[0]
    return float((test.targets[test.mask] == most).double().mean())


def string_baselines(train: Batch, test: Sequence[Batch]) -> dict[str, float]:
    """Correct prefix of counts of the training strings, and of the source itself.

    A word of the source becomes the word that was most often at its position in training. Counts
    treat all unknown words of sources as one. In targets they have numbers, which each string
    draws anew from as many as it has words, so all of them become the one number that was most
    frequent. That is right about once in as many unknown words as the string has words.

    Args:
        train: Strings that are counted.
        test: One batch a length; the mean over lengths is given, as the headline has it.
    """
    seen = _written(id_pairs(train))
    table = _table(seen)
    found = [_of_one_length(seen, table, batch) for batch in test]
    return {name: fmean(one[name] for one in found) for name in found[0]}


def _of_one_length(
    seen: Sequence[WordPair], table: Mapping[str, str], batch: Batch
) -> dict[str, float]:
    asked = _written(id_pairs(batch))
    copied = [pair.source for pair in _written(id_pairs(batch, own=True))]
    said = [[table.get(word, word) for word in pair.source] for pair in asked]
    return {
        **baseline_scores(seen, asked, copied, correct_prefix),
        "word for word": correct_prefix(said, [pair.target for pair in asked]),
    }


def id_pairs(batch: Batch, *, own: bool = False) -> list[tuple[list[int], list[int]]]:
    """Ids of sources and targets, with the EOS of each.

    Args:
        batch: Strings.
        own: Whether an unknown word of the source has the id of its own example.
    """
    text = batch.sources[0]
    real = text.tokens > 0 if text.mask is None else text.mask
    words = batch.extended if own and batch.extended is not None else text.tokens
    return [
        (source[here].tolist(), target[there].tolist())
        for source, here, target, there in zip(words, real, batch.targets, batch.mask, strict=True)
    ]


def _written(pairs: Sequence[tuple[list[int], list[int]]]) -> list[WordPair]:
    """Ids as words, without the EOS."""
    return [WordPair(*(tuple(map(str, ids[:-1])) for ids in pair)) for pair in pairs]


def _table(seen: Sequence[WordPair]) -> dict[str, str]:
    """The most frequent target word at the position of each word; ties by alphabet."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in seen:
        for word, said in zip(pair.source, pair.target, strict=False):
            counted[word][said] += 1
    return {
        word: min(found, key=lambda said: (-found[said], said)) for word, found in counted.items()
    }
