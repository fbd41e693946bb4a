"""Scores that several tasks use unchanged."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.answer import Answer
from bench.api.metric import (
    AVERAGE_LAGGING,
    AVERAGE_PROPORTION,
    SELECTED_PROPORTION,
    SELECTION_MATCH,
    Metric,
    Scored,
)

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
ALIGNMENT_MATCH = Metric(
    name="alignment_match",
    title="Alignment match",
    unit="fraction of aligned tokens",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)
ALIGNMENT_ENTROPY = Metric(
    name="alignment_entropy_nats",
    title="Attention entropy",
    unit="nats",
    low=0.0,
    high=None,
    better="none",
    group="diagnostic",
)

HEARD_BEFORE = (
    "Delays count what attention has read. Only search=streaming predicts words from that alone; "
    "under search=greedy the decoder starts from a summary of the whole source."
)
"""Caveat of tasks that compare delays of both kinds of network."""

WHOLE = 1 - 1e-6
"""Above this share the source has been read, rounding aside."""


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
        for length, right in zip(_lengths(answer), _right(answer), strict=True):
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


def alignment_scores(answers: Sequence[Answer], inside: int) -> list[Scored]:
    """Share of gold-aligned tokens whose strongest key is the gold one, and the mean entropy.

    Weights that are zero, or largest at a key that is not gold too, have missed it.
    """
    matched = total = 0
    entropy = 0.0
    count = 0
    for answer in answers:
        weights, gold = answer.weights, answer.batch.gold
        if weights is None or max(_lengths(answer)) > inside:
            continue
        scored = answer.batch.mask
        logs = torch.where(weights > 0, weights.clamp(min=1e-30).log(), 0.0)
        entropy += float((-(weights * logs).sum(-1))[scored].sum())
        count += int(scored.sum())
        if gold is None:
            continue
        linked = scored & (gold.sum(-1) > 0)
        matched += int((points_into(weights, gold > 0) & linked).sum())
        total += int(linked.sum())
    found = []
    if total:
        found.append(Scored(metric=ALIGNMENT_MATCH.name, value=matched / total))
    if count:
        found.append(Scored(metric=ALIGNMENT_ENTROPY.name, value=entropy / count))
    return found


def strongest(weights: Float[Tensor, "*B S"]) -> tuple[Int[Tensor, "*B"], Bool[Tensor, "*B"]]:
    """The key of the largest weight, and whether there is one such key.

    In a row of zeros, and in one whose largest weight is at several keys, the first key is taken
    only because of its position.

    >>> strongest(torch.tensor([[0.2, 0.8, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]))[1]
    tensor([ True, False, False])
    """
    top, best = weights.max(-1, keepdim=True)
    return best.squeeze(-1), ((weights == top).sum(-1) == 1) & (top.squeeze(-1) != 0)


def points_into(weights: Float[Tensor, "*B S"], wanted: Bool[Tensor, "*B S"]) -> Bool[Tensor, "*B"]:
    """Whether the strongest key is one of those wanted; of several that tie, whether all are.

    >>> rows = torch.tensor([[0.2, 0.8, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    >>> points_into(rows, torch.tensor([True, True, False]).expand(4, 3))
    tensor([ True,  True, False, False])
    """
    top = weights.amax(-1, keepdim=True)
    return ((weights < top) | wanted).all(-1) & (top.squeeze(-1) != 0)


def delay_scores(answers: Sequence[Answer], inside: int) -> list[Scored]:
    """How long a model waits for its source, averaged over sentences.

    Average lagging is that of Ma et al., 2019, https://arxiv.org/abs/1810.08398, equation 9;
    average proportion that of Cho & Esipova, 2016, https://arxiv.org/abs/1606.02012. Only
    attention is counted, as if the encoder were online.

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that is covered.
    """
    found = []
    for answer in answers:
        if answer.read_shares is None:
            continue
        for shares, length in zip(answer.read_shares, _lengths(answer), strict=True):
            if shares and length <= inside:
                found.append(_delays(shares, length + 1))
    if not found:
        return []
    lagging = sum(row[0] for row in found) / len(found)
    proportion = sum(row[1] for row in found) / len(found)
    return [
        Scored(metric=AVERAGE_LAGGING.name, value=lagging),
        Scored(metric=AVERAGE_PROPORTION.name, value=proportion),
    ]


def selection_scores(answers: Sequence[Answer], inside: int) -> list[Scored]:
    """Share of selected tokens that some target is aligned with, and share of tokens selected.

    Lei et al., 2016, https://arxiv.org/abs/1606.04155, section 5.1 (precision of rationales).

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that is covered.
    """
    hit = chosen = tokens = 0
    for answer in answers:
        gold, selected = answer.batch.gold, answer.selected
        if selected is None or gold is None or max(_lengths(answer)) > inside:
            continue
        aligned = (gold * answer.batch.mask.unsqueeze(-1)).amax(1) > 0
        hit += int((aligned & (selected > 0)).sum())
        chosen += int(selected.sum())
        mask = answer.batch.sources[0].mask
        tokens += selected.numel() if mask is None else int(mask.sum())
    if not tokens:
        return []
    found = [Scored(metric=SELECTED_PROPORTION.name, value=chosen / tokens)]
    if chosen:
        found.append(Scored(metric=SELECTION_MATCH.name, value=hit / chosen))
    return found


def _delays(shares: Sequence[float], length: int) -> tuple[float, float]:
    """Average lagging and proportion of one sentence with this many source tokens."""
    pace = length / len(shares)
    until = next((t for t, share in enumerate(shares, 1) if share > WHOLE), len(shares))
    behind = [shares[t] * length - t * pace for t in range(until)]
    return sum(behind) / until, sum(shares) / len(shares)


def _lengths(answer: Answer) -> list[int]:
    """Source symbols without EOS; target length where there is no source."""
    batch = answer.batch
    if not batch.sources:
        return [batch.inputs.shape[1]] * batch.inputs.shape[0]
    text = batch.sources[0]
    if text.mask is None:
        return [text.tokens.shape[1] - 1] * text.tokens.shape[0]
    lengths: list[int] = (text.mask.sum(1) - 1).tolist()
    return lengths
