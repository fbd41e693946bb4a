"""Exact match and token accuracy, also by the length of the source."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from bench.api.answer import Answer
from bench.api.metric import (
    Metric,
    Scored,
)
from tasks.metrics.source_lengths import source_lengths

SEQUENCE_ACCURACY = Metric(
    name="sequence_accuracy",
    title="Exact match",
    unit="fraction of sequences",
    low=0.0,
    high=1.0,
    better="higher",
)
TOKEN_ACCURACY = Metric(
    name="token_accuracy",
    title="Token accuracy",
    unit="fraction of tokens",
    low=0.0,
    high=1.0,
    better="higher",
)


class Right(NamedTuple):
    """How much of one row is right."""

    whole: bool
    tokens: int | None
    """Right tokens under teacher forcing; None where there are no predictions."""
    scored: int
    """Tokens that are scored."""


def scores_by_length(answers: Sequence[Answer], inside: int, *, curve: bool = True) -> list[Scored]:
    """Exact match and token accuracy.

    All tokens right under teacher forcing is the same event as greedy exact match, so no decoding
    loop is needed; where there was one, exact match is that of its output. An output without a
    factor per token has decoded instead, and has no token accuracy.

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that the plain score covers.
        curve: Whether to give the scores of each length too.
    """
    rows: dict[int, list[Right]] = defaultdict(list)
    for answer in answers:
        for length, right in zip(source_lengths(answer), _right(answer), strict=True):
            if right.scored:
                rows[length].append(right)
    covered = [row for length, found in rows.items() if length <= inside for row in found]
    scores = _accuracies(covered, "", None)
    if curve and len(answers) > 1:
        for length in sorted(rows):
            scores += _accuracies(rows[length], "length", float(length))
    return scores


def best_word(vocab: int, lengths: Sequence[int]) -> float:
    """Token accuracy of the best word for every position of strings that end in EOS.

    EOS is right once per string, and a symbol at 1 in `vocab` positions.

    Args:
        vocab: Symbols, equally frequent.
        lengths: Symbols of a string; strings of each of these lengths are equally many.

    >>> best_word(12, [8]), best_word(2, [8])
    (0.1111111111111111, 0.4444444444444444)
    """
    return max(len(lengths), sum(lengths) / vocab) / sum(length + 1 for length in lengths)


def _right(answer: Answer) -> list[Right]:
    """What is right of every row."""
    batch, predicted = answer.batch, answer.predicted
    counts = batch.mask.sum(1).tolist()
    if predicted is not None:
        goods = ((predicted == batch.targets) & batch.mask).sum(1).tolist()
        whole = [good == n for good, n in zip(goods, counts, strict=True)]
    else:
        assert answer.generated is not None, "neither predictions nor decoded output"
        goods = [None] * len(counts)
    if answer.generated is not None:
        whole = _said_right(answer)
    return [Right(*row) for row in zip(whole, goods, counts, strict=True)]


def _said_right(answer: Answer) -> list[bool]:
    """Whether the decoded words are the target, whose last scored word is EOS."""
    batch = answer.batch
    return [
        list(said) == target[mask].tolist()[:-1]
        for said, target, mask in zip(
            answer.generated or (), batch.targets, batch.mask, strict=True
        )
    ]


def _accuracies(rows: list[Right], axis: str, x: float | None) -> list[Scored]:
    if not rows:
        return []
    whole = sum(row.whole for row in rows) / len(rows)
    found = [Scored(metric=SEQUENCE_ACCURACY.name, value=whole, axis=axis, x=x)]
    tokens = [row.tokens for row in rows if row.tokens is not None]
    if len(tokens) == len(rows):
        share = sum(tokens) / sum(row.scored for row in rows)
        found.append(Scored(metric=TOKEN_ACCURACY.name, value=share, axis=axis, x=x))
    return found
