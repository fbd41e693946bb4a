"""Weights of alpha-entmax for 1 < alpha <= 2: the threshold is found by Newton's method.

With p = 1 / (alpha - 1) >= 1, energies z times alpha - 1, and y = max(z - tau, 0), the weights y^p
sum to one where the p-norm of y is one. The norm falls in tau and is convex, so that from a tau
that is too small Newton's steps never go too far. It is almost straight, so few are needed.
"""

from math import log2

import torch
from torch import Tensor

from bench.api.shapes import Energy, Weights
from variants.normalizers.sparse_weights import Alpha


def newton_weights(energy: Energy, alpha: Alpha) -> Weights:
    """Weights along the last dimension, which sum to one; their gradient is not that of energies.

    A row whose norm is one stays, so no other row changes what it gets.
    """
    power = alpha - 1
    scaled = energy * power
    scaled = scaled - scaled.amax(-1, keepdim=True)
    threshold = torch.full_like(scaled[..., :1], -1.0)
    near = 1 + 4 * torch.finfo(scaled.dtype).eps
    for _ in range(_enough_rounds(energy, alpha)):
        above = (scaled - threshold).clamp_(min=0)
        # zero at y = 0 even if the exponent is; `where` is slow on signs that are hard to predict
        slope = above ** (1 / power - 1) * above.sign()
        total = (slope * above).sum(-1, keepdim=True)
        norm = total**power
        moves = norm > near
        if _may_look() and not bool(moves.any()):
            break
        step = (total - total / norm) / slope.sum(-1, keepdim=True)
        threshold = torch.where(moves, threshold + step, threshold)
    weights = (scaled - threshold).clamp_(min=0) ** (1 / power)
    return weights / weights.sum(-1, keepdim=True)


def _enough_rounds(energy: Energy, alpha: Alpha) -> int:
    """Steps that are enough for any row.

    Each divides (norm - 1) * slope of the norm by four or more, as every step on a convex function
    does. Both factors are at most S^(alpha - 1) before the first, and the slope is at least one.
    """
    power = 1.0 if isinstance(alpha, Tensor) else alpha - 1
    return round(power * log2(energy.shape[-1]) - log2(torch.finfo(energy.dtype).eps) / 2) + 2


def _may_look() -> bool:
    """Whether one may ask if a step is needed; compiled code takes all steps."""
    return not torch.compiler.is_compiling()
