"""Scores of attention weights: alignment match, entropy, and tokens that are selected."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.answer import Answer
from bench.api.metric import (
    SELECTED_PROPORTION,
    SELECTION_MATCH,
    Metric,
    Scored,
)
from tasks.metrics.source_lengths import source_lengths

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
ROUNDING = 1e-3
"""How far rounding may take a weight over one, also in half precision."""


def alignment_scores(answers: Sequence[Answer], inside: int) -> list[Scored]:
    """Share of gold-aligned tokens whose strongest key is the gold one, and the mean entropy.

    Weights that are zero, or largest at a key that is not gold too, have missed it. Weights that
    are no shares (`are_shares`) have no entropy.

    Args:
        answers: One or more batches.
        inside: Longest source (without EOS) that is covered; a batch with a longer one is left out.
    """
    matched = total = 0
    entropy = 0.0
    count = 0
    defined = True
    for answer in answers:
        weights, gold = answer.weights, answer.batch.gold
        if weights is None or max(source_lengths(answer)) > inside:
            continue
        scored = answer.batch.mask
        defined &= are_shares(weights[scored])
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
    if count and defined:
        found.append(Scored(metric=ALIGNMENT_ENTROPY.name, value=entropy / count))
    return found


def are_shares(weights: Float[Tensor, "*B S"]) -> bool:
    """Whether all weights are between zero and one, where w log w and an entropy are defined.

    Rounding may take a weight over one. Rows may sum to less or more than one.

    >>> are_shares(torch.tensor([0.2, 0.8])), are_shares(torch.tensor([-0.1, 1.1]))
    (True, False)
    """
    return bool(((weights >= 0) & (weights <= 1 + ROUNDING)).all())


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
        if selected is None or gold is None or max(source_lengths(answer)) > inside:
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
