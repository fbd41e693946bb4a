"""Rules that rewrite strings of symbols: which source position each target position copies."""

from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional

from bench.api.batch import Batch, Text

PAD, BOS, EOS, FIRST = 0, 1, 2, 4
"""Ids below 4 are special (3 is UNK, unused here)."""
KINDS = 4
"""Of symbols under the rule `fert`, which are written 0, 1, 2 or 3 times."""
Rule = Literal["copy", "reverse", "swap", "dict", "svo", "fert"]


def rewrite(
    rule: Rule,
    symbols: Int[Tensor, "B S"],
    lengths: Int[Tensor, " B"],
    table: Int[Tensor, " V"],
) -> Batch:
    """Apply a rule; source and target both end in EOS, which align with each other.

    Args:
        rule: How the target follows from the source.
        symbols: Sources without EOS; what stands behind the end of each does not count.
        lengths: How many symbols each source has.
        table: The word for every id, for rules that translate.
    """
    rows, width = symbols.shape
    source = torch.zeros(rows, width + 1, dtype=torch.int64)
    source[:, :width] = torch.where(torch.arange(width) < lengths[:, None], symbols, PAD)
    source[torch.arange(rows), lengths] = EOS
    place, target_lengths = rule_alignment(rule, symbols, lengths)
    steps = torch.arange(int(target_lengths.max()) + 1)
    mask = steps <= target_lengths[:, None]
    ends = steps == target_lengths[:, None]
    place = torch.where(ends, lengths[:, None], place[:, : len(steps)].clamp(max=width))
    words = source.gather(1, place)
    if rule not in ("copy", "reverse"):
        words = table[words]
    targets = torch.where(ends, EOS, torch.where(mask, words, PAD))
    inputs = torch.cat((torch.full((rows, 1), BOS), targets[:, :-1]), 1)
    gold = functional.one_hot(place, width + 1) * mask.unsqueeze(-1)
    real = torch.arange(width + 1) <= lengths[:, None]
    whole = bool(real.all())
    return Batch(
        sources=(Text(source, None if whole else real),),
        inputs=inputs,
        targets=targets,
        mask=mask,
        extended=source,
        gold=gold.float(),
    )


def rule_alignment(
    rule: Rule, symbols: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
) -> tuple[Int[Tensor, "B T"], Int[Tensor, " B"]]:
    """Source position of every target step (one step more than the longest), target lengths."""
    count = lengths[:, None]
    if rule == "fert":
        return _fertile(symbols, lengths)
    steps = torch.arange(symbols.shape[1] + 1).expand(len(lengths), -1)
    if rule == "reverse":
        return (count - 1 - steps).clamp(min=0), lengths
    if rule == "swap":
        partner = steps ^ 1
        return torch.where(partner < count, partner, steps), lengths
    if rule == "svo":
        # the last third moves to the front
        shift = count - (count + 2) // 3
        return (steps + shift) % count.clamp(min=1), lengths
    return steps, lengths


def _fertile(
    symbols: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
) -> tuple[Int[Tensor, "B T"], Int[Tensor, " B"]]:
    """Symbol types emit 0, 1, 2 or 3 copies; an empty target gets its first symbol once."""
    real = torch.arange(symbols.shape[1]) < lengths[:, None]
    copies = ((symbols - FIRST) % KINDS) * real
    copies[:, 0] += (copies.sum(1) == 0).long()
    ends = copies.cumsum(1)
    total = ends[:, -1]
    steps = torch.arange(int(total.max()) + 1).expand(len(lengths), -1).contiguous()
    return torch.searchsorted(ends, steps, right=True), total
