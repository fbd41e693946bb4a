"""Exact match, token accuracy and the correct prefix, also by the length of the source."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from statistics import fmean
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
PREFIX_ACCURACY = Metric(
    name="prefix_accuracy",
    title="Correct prefix",
    unit="fraction of tokens that greedy decoding writes before its first error",
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
    prefix: int
    """Right tokens before the first error of greedy decoding."""


def scores_by_length(
    answers: Sequence[Answer], inside: int, *, curve: bool = True, prefix: bool = False
) -> list[Scored]:
    """Exact match and token accuracy, and the correct prefix if asked.

    Up to the first error, greedy decoding reads what teacher forcing gives it. So exact match and
    correct prefix need no decoding loop; where there was one, they are those of its output. An
    output without a factor per token has decoded instead, and has no token accuracy.

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that the plain score covers.
        curve: Whether to give the scores of each length too.
        prefix: Whether to give the correct prefix too: tokens before the first error, as a share
            of all tokens.
    """
    rows: dict[int, list[Right]] = defaultdict(list)
    for answer in answers:
        for length, right in zip(source_lengths(answer), _right(answer), strict=True):
            if right.scored:
                rows[length].append(right)
    covered = [row for length, found in rows.items() if length <= inside for row in found]
    scores = _accuracies(covered, "", None, prefix)
    if curve and len(answers) > 1:
        for length in sorted(rows):
            scores += _accuracies(rows[length], "length", float(length), prefix)
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


def constant_prefix(share: float, tokens: Sequence[float], times: int = 1) -> float:
    """Correct prefix of one symbol that is written for ever, at most.

    Args:
        share: How often the next symbol of a source is that one; sources are independent draws.
        tokens: Tokens of a target with its EOS, at each length; the mean over lengths is given.
        times: How often each symbol is written.

    >>> round(constant_prefix(0.1, [13.0, 17.0]), 4)
    0.0075
    """
    if share >= 1:
        return 1.0
    right = times * share / (1 - share)
    return min(1.0, right * fmean(1 / count for count in tokens))


def _right(answer: Answer) -> list[Right]:
    """What is right of every row."""
    batch, predicted = answer.batch, answer.predicted
    counts = batch.mask.sum(1).tolist()
    goods: list[int | None] = [None] * len(counts)
    if predicted is not None:
        right = (predicted == batch.targets) & batch.mask
        goods = right.sum(1).tolist()
        # what is not scored neither counts nor ends the prefix
        unbroken = (right | ~batch.mask).long().cumprod(1).bool()
        prefixes = (unbroken & batch.mask).sum(1).tolist()
        whole = [prefix == count for prefix, count in zip(prefixes, counts, strict=True)]
    if answer.generated is not None:
        prefixes, whole = _said_right(answer)
    else:
        assert predicted is not None, "neither predictions nor decoded output"
    return [Right(*row) for row in zip(whole, goods, counts, prefixes, strict=True)]


def _said_right(answer: Answer) -> tuple[list[int], list[bool]]:
    """Right tokens before the first error, and whether the decoded words are the target.

    The last scored word of a target is EOS, which decoded words end without.
    """
    batch = answer.batch
    prefixes, whole = [], []
    for said, target, mask in zip(answer.generated or (), batch.targets, batch.mask, strict=True):
        wanted = target[mask].tolist()
        if not wanted:
            whole.append(False)
            prefixes.append(0)
            continue
        whole.append(list(said) == wanted[:-1])
        pairs = zip([*said, wanted[-1]], wanted, strict=False)
        prefixes.append(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return prefixes, whole


def _accuracies(rows: list[Right], axis: str, x: float | None, prefix: bool) -> list[Scored]:
    if not rows:
        return []
    whole = sum(row.whole for row in rows) / len(rows)
    found = [Scored(metric=SEQUENCE_ACCURACY.name, value=whole, axis=axis, x=x)]
    tokens = [row.tokens for row in rows if row.tokens is not None]
    if len(tokens) == len(rows):
        share = sum(tokens) / sum(row.scored for row in rows)
        found.append(Scored(metric=TOKEN_ACCURACY.name, value=share, axis=axis, x=x))
    if prefix:
        share = sum(row.prefix for row in rows) / sum(row.scored for row in rows)
        found.append(Scored(metric=PREFIX_ACCURACY.name, value=share, axis=axis, x=x))
    return found
