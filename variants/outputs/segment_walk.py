"""Walks along a source that only move forward: their summed probability, and the greedy one.

Yu, Buys & Blunsom, 2016, https://arxiv.org/abs/1609.08194, section 2.2.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from variants.outputs.copy_scores import NEVER

Scores = Float[Tensor, "B T S"]


def forward_scores(log_emit: Scores, log_read: Scores, log_word: Scores) -> Scores:
    """The log of A_t(s): the words up to t are emitted, the last of them at position s.

    A_t(s) = p(y_t | s) e_ts Q_t(s) with Q_t(s) = (1 - e_t,s-1) Q_t(s-1) + A_{t-1}(s), and all of
    A_{-1} at position 0. All (t, s) with equal t + s are done at once, by the additions of the
    recursion alone: nothing is subtracted, so saturated choices stay exact.
    """
    rows, length, places = log_emit.shape
    stay = _skew(log_emit + log_word).unbind(-1)
    move = _skew(log_read).unbind(-1)
    never = log_emit.new_full((rows, 1), NEVER)
    reached = torch.cat((torch.zeros_like(never), never.expand(-1, length - 1)), 1)
    found = [stay[0] + reached]
    for at in range(1, len(stay)):
        arriving = torch.cat((never, found[-1][:, :-1]), 1)
        reached = torch.logaddexp(move[at - 1] + reached, arriving).clamp_min(NEVER)
        found.append(stay[at] + reached)
    skewed = torch.stack(found, -1).flatten(1)
    return functional.pad(skewed, (0, length)).unflatten(1, (length, -1))[..., :places]


def _skew(x: Scores) -> Float[Tensor, "B T D"]:
    """Move row t right by t among `NEVER`: out[t, t + s] = x[t, s]."""
    length, places = x.shape[1:]
    width = length + places - 1
    flat = functional.pad(x, (0, length), value=NEVER).flatten(1)
    return flat[:, : length * width].unflatten(1, (length, width))


def greedy_places(
    emits: Bool[Tensor, "B T S"], place: Int[Tensor, " B"], last: Int[Tensor, " B"]
) -> Int[Tensor, "B T"]:
    """First position from the last one on where emitting is likelier, or the last token."""
    at = torch.arange(emits.shape[2], device=emits.device)
    found = []
    for row in emits.unbind(1):
        ahead = at >= place.unsqueeze(1)
        stops = ahead & (row | (at >= last.unsqueeze(1)))
        place = stops.int().argmax(1)
        found.append(place)
    return torch.stack(found, 1)
