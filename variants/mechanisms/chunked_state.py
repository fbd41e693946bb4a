"""A matrix of memory that is written step by step, computed chunk by chunk.

    S_t = diag(d_t) S_(t-1) + k_t (v_t - a_t S_(t-1)),    o_t = q_t S_t,    d_t = exp(g_t)

Every linear recurrence here is this one with some d, a and k. Without a, all v are written as they
are. With a = b d k it is the delta rule: what stood under k is replaced.

Within a chunk, what is written solves one triangular system, (I + A) u = v - A_0 S, where A has
a_t . k_s under the decay between s and t, for s < t (Yang et al., 2024, section 3.2,
https://arxiv.org/abs/2406.06484).

A processor takes one chunk after the other. A GPU would wait for each small product, so it takes
many chunks at once. What a chunk does to the matrix before it is one affine map, S -> T S + W, and
maps of neighbors are joined in log2 n rounds (Hillis & Steele, 1986, "Data parallel algorithms",
https://doi.org/10.1145/7902.7903; Martin & Cundy, 2018, https://arxiv.org/abs/1709.04057).
"""

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from variants.mechanisms.decayed_products import decayed_products

CHUNK = 64
"""Steps answered at once; bounds memory, changes no result."""
AT_ONCE = 2**14
"""Chunks of all rows and heads that a GPU takes at once.

At 64 units a head, the maps of so many chunks take a quarter of a gigabyte in float32."""

Matrix = Float[Tensor, "B H E Ev"]


class Steps(NamedTuple):
    """What a sequence does to the matrix, and how it is read; all of one format."""

    query: Float[Tensor, "B H M E"]
    key: Float[Tensor, "B H M E"]
    """Under what is written."""
    value: Float[Tensor, "B H M Ev"]
    log_decay: Float[Tensor, "B H M #E"] | None = None
    """g, not positive: of every unit of the key, or one of all; None where nothing decays."""
    erase: Float[Tensor, "B H M E"] | None = None
    """a, what is subtracted before writing; None where nothing is."""

    def to(self, dtype: torch.dtype) -> "Steps":
        """The same in a format."""
        query, key, value = (x.to(dtype) for x in self[:3])
        log_decay, erase = (None if x is None else x.to(dtype) for x in self[3:])
        return Steps(query, key, value, log_decay, erase)

    def cut(self, some: slice) -> "Steps":
        """Some of the steps."""
        query, key, value = (x[:, :, some] for x in self[:3])
        log_decay, erase = (None if x is None else x[:, :, some] for x in self[3:])
        return Steps(query, key, value, log_decay, erase)

    def in_chunks(self, chunk: int) -> "Chunked":
        """The same, cut into whole chunks."""
        query, key, value = (x.unflatten(2, (-1, chunk)) for x in self[:3])
        rest = (None if x is None else x.unflatten(2, (-1, chunk)) for x in self[3:])
        return Chunked(query, key, value, *rest)


class Chunked(NamedTuple):
    """Steps in chunks, as `Steps` has them one behind the other."""

    query: Float[Tensor, "B H N C E"]
    key: Float[Tensor, "B H N C E"]
    value: Float[Tensor, "B H N C Ev"]
    log_decay: Float[Tensor, "B H N C #E"] | None
    erase: Float[Tensor, "B H N C E"] | None


def full_products(state: Tensor) -> AbstractContextManager[object]:
    """Where products are taken in the format of their factors, and not in half precision.

    Args:
        state: A state, of any shape, on the same device.
    """
    kind = state.device.type
    if state.is_meta or not torch.is_autocast_enabled(kind):
        return nullcontext()
    return torch.autocast(kind, enabled=False)


def run(
    steps: Steps, state: Matrix, chunk: int = CHUNK, at_once: int | None = None
) -> tuple[Float[Tensor, "B H M Ev"], Matrix]:
    """Read the matrix after each step; what was read, and the matrix in the end.

    Args:
        steps: What is done.
        state: The matrix before the first step.
        chunk: Steps of a chunk.
        at_once: Chunks that are answered together. By default 1 on a processor, and on a GPU as
            many as make `AT_ONCE` chunks of all rows and heads.
    """
    kind = state.device.type
    if not state.is_meta and torch.is_autocast_enabled(kind):
        # products in half precision would lose what sums need
        wide = steps.to(state.dtype)
        with torch.autocast(kind, enabled=False):
            return run(wide, state, chunk, at_once)
    if at_once is None:
        rows, heads = state.shape[:2]
        at_once = 1 if state.device.type == "cpu" else max(1, AT_ONCE // (rows * heads))
    found = []
    length, at = steps.query.shape[2], 0
    while at < length:
        whole = min(at_once, (length - at) // chunk)
        end = at + chunk * whole if whole > 1 else min(length, at + chunk)
        part = steps.cut(slice(at, end))
        output, state = _chunks(part, state, chunk) if whole > 1 else _chunk(part, state)
        found.append(output)
        at = end
    return torch.cat(found, 2), state


def _chunk(steps: Steps, state: Matrix) -> tuple[Float[Tensor, "B H M Ev"], Matrix]:
    """Answer a few steps from the matrix before them and the keys among them."""
    query, key, written, log_decay, erase = steps
    if log_decay is None:
        if erase is not None:
            inner = (erase @ key.transpose(2, 3)).tril(-1)
            written = _solve(inner, written - erase @ state)
        output = (query @ key.transpose(2, 3)).tril() @ written + query @ state
        return output, state + key.transpose(2, 3) @ written
    total = log_decay.cumsum(2)
    if erase is not None:
        before = total - log_decay
        inner = decayed_products(erase, key, before, total, -1)
        written = _solve(inner, written - (erase * before.exp()) @ state)
    near = decayed_products(query, key, total, total, 0) @ written
    last = total[:, :, -1:]
    kept = last.exp().transpose(2, 3) * state
    after = kept + (key * (last - total).exp()).transpose(2, 3) @ written
    return near + (query * total.exp()) @ state, after


def _chunks(steps: Steps, state: Matrix, chunk: int) -> tuple[Float[Tensor, "B H M Ev"], Matrix]:
    """Answer many whole chunks: first among themselves, then from the matrices before them."""
    query, key, value, log_decay, erase = steps.in_chunks(chunk)
    through: Float[Tensor, "B H N #E #E"] | None = None
    if log_decay is None:
        within = (query @ key.mT).tril()
        inner = None if erase is None else (erase @ key.mT).tril(-1)
    else:
        total = log_decay.cumsum(-2)
        before, last = total - log_decay, total[..., -1:, :]
        within = decayed_products(query, key, total, total, 0)
        inner = None if erase is None else decayed_products(erase, key, before, total, -1)
        erase = None if erase is None else erase * before.exp()
        query, key = query * total.exp(), key * (last - total).exp()
        through = last.exp().mT
    if inner is not None and erase is not None:
        width = value.shape[-1]
        value, erase = _solve(inner, torch.cat((value, erase), -1)).tensor_split((width,), -1)
        kept = torch.eye(key.shape[-1], dtype=key.dtype, device=key.device)
        through = (kept if through is None else kept * through) - key.mT @ erase
    every = _every(through, key.mT @ value, state)
    earlier = every[:, :, :-1]
    written = value if erase is None else value - erase @ earlier
    return (within @ written + query @ earlier).flatten(2, 3), every[:, :, -1].clone()


def _every(
    through: Float[Tensor, "B H N e f"] | None, added: Float[Tensor, "B H N E Ev"], state: Matrix
) -> Float[Tensor, "B H K E Ev"]:
    """S_n = through_n S_(n-1) + added_n for every n, behind S_0; K = N + 1.

    Args:
        through: A matrix, or a column with a factor of each row; None where nothing is lost.
        added: What is added.
        state: S_0.
    """
    every = torch.cat((state.unsqueeze(2), added), 2)
    if through is None:
        return every.cumsum(2)
    join = torch.mul if through.shape[-1] == 1 else torch.matmul
    through = torch.cat((through[:, :, :1], through), 2)  # nothing goes through the first
    reach = 1
    while reach < every.shape[2]:
        # after this round, each matrix has what was added by twice as many chunks
        later = through[:, :, reach:]
        joined = every[:, :, reach:] + join(later, every[:, :, :-reach])
        every = torch.cat((every[:, :, :reach], joined), 2)
        through = torch.cat((through[:, :, :reach], join(later, through[:, :, :-reach])), 2)
        reach *= 2
    return every


def _solve(
    inner: Float[Tensor, "*n M M"], right: Float[Tensor, "*n M W"]
) -> Float[Tensor, "*n M W"]:
    """Solve (I + inner) u = right for u, where inner is strictly lower."""
    return torch.linalg.solve_triangular(inner, right, upper=False, unitriangular=True)
