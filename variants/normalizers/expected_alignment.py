"""Stops of a monotonic walk over keys: the hard ones, and the expected ones in several ways.

With stop probabilities p and the alignment a' of the query before, q_s = (1 - p_{s-1}) q_{s-1} +
a'_s and a_s = p_s q_s (Raffel et al., 2017, section 2.3). Every way is sequential in the queries.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.shapes import Weights

Computation = Literal["auto", "wavefront", "doubling", "pairwise", "recursive", "parallel"]
Previous = Float[Tensor, "B H S"]

FEW_QUERIES = 5
"""Below this, doubling query by query beats a wavefront (measured, 30 keys, one CPU core)."""


def expected_alignment(stop: Weights, previous: Previous, computation: Computation) -> Weights:
    """Expected alignment of every query.

    Args:
        stop: Probability of stopping at a key once there; 0 at keys that may not be read.
        previous: Alignment of the query before the first one.
        computation: `wavefront` takes L + S rounds, `doubling` log2(S) rounds per query, `pairwise`
            O(S^2) memory and time per query, `recursive` S rounds per query; all are exact. `auto`
            is `doubling` for few queries, else `wavefront`. `parallel` is the published closed
            form, which is not exact.
    """
    if computation == "wavefront" or (computation == "auto" and stop.shape[2] >= FEW_QUERIES):
        return _wavefront(stop, previous)
    by_row = {"pairwise": _pairwise, "recursive": _recursive, "parallel": _closed_form}
    advance = by_row.get(computation, _doubling)
    rows = []
    for row in stop.unbind(2):
        previous = advance(row, previous)
        rows.append(previous)
    return torch.stack(rows, 2)


def hard_walk(stop: Weights, previous: Previous) -> Weights:
    """First key from the last stop on that is likelier to stop than not; none once off the end."""
    stops = (stop > 0.5).detach()
    place = previous > 0.5
    found = []
    for row in stops.unbind(2):
        ahead = row & (place.cumsum(-1) > 0)
        place = ahead & (ahead.cumsum(-1) == 1)
        found.append(place)
    return torch.stack(found, 2).to(stop.dtype)


def _wavefront(stop: Weights, previous: Previous) -> Weights:
    """All (query, key) with equal query + key at once: L + S rounds, the additions of the scan."""
    length, num_keys = stop.shape[2:]
    stops = _skew(stop).unbind(-1)
    entering = functional.pad(previous, (0, length - 1)).unbind(-1)
    reached = functional.pad(entering[0].unsqueeze(-1), (0, length - 1))
    found = [stops[0] * reached]
    for at in range(1, len(stops)):
        arriving = torch.cat((entering[at].unsqueeze(-1), found[-1][..., :-1]), -1)
        reached = (1 - stops[at - 1]) * reached + arriving
        found.append(stops[at] * reached)
    skewed = torch.stack(found, -1).flatten(-2)
    return functional.pad(skewed, (0, length)).unflatten(-1, (length, -1))[..., :num_keys]


def _skew(x: Weights) -> Float[Tensor, "B H L D"]:
    """Move row t right by t, zeros around it: out[t, t + s] = x[t, s]."""
    length, num_keys = x.shape[2:]
    width = length + num_keys - 1
    flat = functional.pad(x, (0, length)).flatten(-2)
    return flat[..., : length * width].unflatten(-1, (length, width))


def _doubling(stop: Previous, previous: Previous) -> Previous:
    """Prefix scan over keys: each round doubles the stretch that a walk has been summed over."""
    return stop * scan(functional.pad(1 - stop[..., :-1], (1, 0)), previous)


def scan(kept: Float[Tensor, "*n S"], added: Float[Tensor, "*n S"]) -> Float[Tensor, "*n S"]:
    """x_s = kept_s x_{s-1} + added_s by prefix doubling, in log2(S) rounds without a division."""
    step = 1
    while step < kept.shape[-1]:
        more = added[..., step:] + kept[..., step:] * added[..., :-step]
        longer = kept[..., step:] * kept[..., :-step]
        added = torch.cat((added[..., :step], more), -1)
        kept = torch.cat((kept[..., :step], longer), -1)
        step *= 2
    return added


def _pairwise(stop: Previous, previous: Previous) -> Previous:
    """Probability of walking from every key to every later one; O(S^2) memory."""
    num_keys = stop.shape[-1]
    later = torch.ones(num_keys, num_keys, dtype=torch.bool, device=stop.device).triu()
    pass_before = functional.pad(1 - stop[..., :-1], (1, 0), value=1.0).unsqueeze(-2)
    walk = torch.where(later.triu(1), pass_before, 1.0).cumprod(-1)
    walk = torch.where(later, walk, 0.0)
    return stop * (previous.unsqueeze(-2) @ walk).squeeze(-2)


def _recursive(stop: Previous, previous: Previous) -> Previous:
    """The definition: a scan over keys."""
    reached = previous[..., 0]
    found = [stop[..., 0] * reached]
    for s in range(1, stop.shape[-1]):
        reached = (1 - stop[..., s - 1]) * reached + previous[..., s]
        found.append(stop[..., s] * reached)
    return torch.stack(found, -1)


def _closed_form(stop: Previous, previous: Previous) -> Previous:
    """The published quotient of sums and products, clipped; loses mass where it clips."""
    passed = functional.pad(1 - stop[..., :-1], (1, 0), value=1.0).cumprod(-1)
    return stop * passed * (previous / passed.clamp(1e-10, 1.0)).cumsum(-1)
