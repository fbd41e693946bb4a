"""Sparse normalizers: weights that are exactly zero at far keys.

The library `entmax` or Newton's method finds the weights. Their gradient is written here, because
torch.compile cannot trace the library's backward passes.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy, Weights
from variants.precision import at_least_single

Alpha = float | Float[Tensor, "H 1 1"]


def sparse_weights(
    normalize: Callable[[Energy], Weights],
    energy: Energy,
    allowed: Allowed | None,
    *,
    alpha: Alpha,
    far: float,
) -> Weights:
    """Normalize the allowed keys of each row; a row without any gives zeros.

    Args:
        normalize: From energies to weights along the last dimension; its gradient is not used.
        energy: Energies.
        allowed: Keys that may be read; None for all.
        alpha: Which member of the family it is: 2 is sparsemax.
        far: Distance below the best key from which on weights are zero. Hidden keys are put there,
            and not at minus infinity, whose sums and squares are not numbers.
    """
    wide = at_least_single(energy)
    if allowed is None:
        return _with_gradient(normalize, wide, alpha).to(energy.dtype)
    lowest = torch.finfo(wide.dtype).min
    top = wide.detach().masked_fill(~allowed, lowest).amax(-1, keepdim=True)
    # a row without keys has no best one; zero keeps its gradient finite
    top = torch.where(allowed.any(-1, keepdim=True), top, 0.0)
    shifted = torch.where(allowed, wide - top, -2.0 * far)
    weights = _with_gradient(normalize, shifted, alpha)
    return torch.where(allowed, weights, 0.0).to(energy.dtype)


def _with_gradient(normalize: Callable[[Energy], Weights], energy: Energy, alpha: Alpha) -> Weights:
    """The weights, plus a zero that has their gradient (Peters et al., 2019, section 3)."""
    with torch.no_grad():
        weights = normalize(energy)
    if not torch.is_grad_enabled():
        return weights
    with torch.no_grad():
        # one in place of zero, whose power may be infinite; `where` and a root of zero are slow
        seen = weights.sign()
        slope = torch.maximum(weights, 1 - seen) ** (2 - alpha) * seen
        share = slope / slope.sum(-1, keepdim=True)
    moved = slope * (energy - (share * energy).sum(-1, keepdim=True))
    if isinstance(alpha, Tensor):
        moved = moved + alpha * _by_alpha(weights, share, alpha)
    # the difference is exactly zero, hence the sum exactly the weights
    return weights + (moved - moved.detach())


@torch.no_grad()
def _by_alpha(weights: Weights, share: Weights, alpha: Float[Tensor, "H 1 1"]) -> Weights:
    """Derivative of the weights by alpha (Correia et al., 2019, section 3)."""
    entropies = torch.special.entr(weights)
    spread = entropies - share * entropies.sum(-1, keepdim=True)
    return (weights - share) / (alpha - 1) ** 2 + spread / (alpha - 1)
