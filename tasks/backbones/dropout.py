"""Dropout whose mask takes 16 random bits a unit, which a CPU draws in a third of the time.

Srivastava et al., 2014, "Dropout: a simple way to prevent neural networks from overfitting",
https://jmlr.org/papers/v15/srivastava14a.html, section 4.

Deviations: units that stay are scaled in training, so that a test scales nothing.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

VALUES = 2**16
"""Of 16 bits."""


class Dropout(nn.Dropout):
    """`nn.Dropout` with a probability that is rounded to a multiple of 1 / 65,536."""

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Set units to zero in training, each by itself."""
        dropped = round(self.p * VALUES)
        if not (self.training and x.is_cpu and 0 < dropped < VALUES):
            return super().forward(x)
        # without bounds the sign would not be drawn, and one unit in four had 15 random bits
        whole = torch.iinfo(torch.int64)
        drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(whole.min, None)
        bits = drawn.view(torch.int16)[: x.numel()].view(x.shape)
        stays = bits >= dropped - VALUES // 2
        return x * stays.to(x.dtype).mul_(VALUES / (VALUES - dropped))
