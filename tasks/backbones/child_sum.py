"""Summaries of several sources joined by gates, as a tree's node joins its children.

Zoph & Knight, 2016, "Multi-source neural translation", https://arxiv.org/abs/1601.00710 (child-sum
combination), after Tai et al., 2015, https://arxiv.org/abs/1503.00075.

Deviations: encoders of the bench have one summary, so a linear map of it replaces the child's
cell; the decoder's own map to its first state follows.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ChildSum(nn.Module):
    """c = i * u + sum_k f_k * C_k h_k and h = o * tanh(c).

    Input, output and candidate sum over the children; every child has a forget gate of its own.
    """

    def __init__(self, widths: tuple[int, ...], hidden: int) -> None:
        super().__init__()
        self.shared = nn.Linear(sum(widths), 3 * hidden)
        self.forget = nn.ModuleList(nn.Linear(width, hidden) for width in widths)
        self.cell = nn.ModuleList(nn.Linear(width, hidden, bias=False) for width in widths)

    def forward(self, summaries: list[Tensor]) -> Float[Tensor, "B D"]:
        """Join one summary a source."""
        entering, leaving, fresh = self.shared(torch.cat(summaries, -1)).chunk(3, -1)
        cell = torch.sigmoid(entering) * torch.tanh(fresh)
        for forget, own, summary in zip(self.forget, self.cell, summaries, strict=True):
            cell = cell + torch.sigmoid(forget(summary)) * own(summary)
        return torch.sigmoid(leaving) * torch.tanh(cell)
