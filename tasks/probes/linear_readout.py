"""A linear readout of states: what is known of a label from a state, by ridge regression.

Alain & Bengio, 2017, "Understanding intermediate layers using linear classifier probes",
https://arxiv.org/abs/1610.01644, section 3. Here one-hot labels are fitted in closed form, on half
of the examples.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

RIDGE = 1e-3
"""Penalty, as a share of the mean variance of a state's coordinates."""


def half_of(counts: Int[Tensor, " B"], seed: int) -> Bool[Tensor, " N"]:
    """Which tokens belong to a random half of the examples, which stay whole.

    Args:
        counts: Tokens of each example.
        seed: Of the draw.
    """
    order = torch.randperm(len(counts), generator=torch.Generator().manual_seed(seed))
    first = torch.zeros(len(counts), dtype=torch.bool)
    first[order[: len(counts) // 2]] = True
    return first.repeat_interleave(counts.cpu())


def read_linearly(
    known: Float[Tensor, "N D"], places: Int[Tensor, " N"], asked: Float[Tensor, "M D"]
) -> Int[Tensor, " M"]:
    """The likeliest place of states, by ridge regression with an intercept on other states."""
    wanted = functional.one_hot(places).to(known)
    # unit variance for the penalty, whatever the scale of a layer is
    middle = known.mean(0)
    spread = known.var(0).mean().clamp(min=1e-30).sqrt()
    scaled = (known - middle) / spread
    gram = scaled.T @ scaled + RIDGE * len(known) * torch.eye(known.shape[1]).to(known)
    usual = wanted.mean(0)
    fitted = torch.linalg.solve(gram, scaled.T @ (wanted - usual))
    return ((asked - middle) / spread @ fitted + usual).argmax(-1)
