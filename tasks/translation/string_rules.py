"""Rules that rewrite strings of symbols: which source position each target position copies."""

from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

PAD, BOS, EOS, FIRST = 0, 1, 2, 4
"""Ids below 4 are special (3 is UNK, unused here)."""
KINDS = 4
"""Of symbols under the rule `fert`, which are written 0, 1, 2 or 3 times."""
Rule = Literal["copy", "reverse", "swap", "dict", "svo", "fert"]


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
