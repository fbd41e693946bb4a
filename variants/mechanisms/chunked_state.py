"""A matrix of memory that is written step by step, computed chunk by chunk.

    S_t = diag(d_t) S_(t-1) + k_t (v_t - a_t S_(t-1)),    o_t = q_t S_t,    d_t = exp(g_t)

Every linear recurrence here is this one with some d, a and k. Without a, all v are written as they
are. With a = b d k it is the delta rule: what stood under k is replaced.

Within a chunk, what is written solves one triangular system, (I + A) u = v - A_0 S, where A has
a_t . k_s under the decay between s and t, for s < t (Yang et al., 2024, section 3.2,
https://arxiv.org/abs/2406.06484). Decays are sums of logarithms, and only differences that are not
positive are exponentiated, so that nothing overflows (Yang et al., 2024, section 4.3,
https://arxiv.org/abs/2312.06635).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

CHUNK = 64
"""Steps answered at once; bounds memory, changes no result."""
BLOCK = 8
"""Steps whose decays are compared pair by pair, unit by unit; a chunk has eight blocks.

Of 4, 8 and 16 it is the fastest on a CPU core (forward and backward of 128 tokens)."""

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

    def cut(self, some: slice) -> "Steps":
        """Some of the steps."""
        query, key, value = (x[:, :, some] for x in self[:3])
        log_decay, erase = (None if x is None else x[:, :, some] for x in self[3:])
        return Steps(query, key, value, log_decay, erase)


def run(
    steps: Steps, state: Matrix, chunk: int = CHUNK
) -> tuple[Float[Tensor, "B H M Ev"], Matrix]:
    """Read the matrix after each step; what was read, and the matrix in the end."""
    found = []
    for at in range(0, steps.query.shape[2], chunk):
        output, state = _chunk(steps.cut(slice(at, at + chunk)), state)
        found.append(output)
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
        inner = _products(erase, key, before, total, -1)
        written = _solve(inner, written - (erase * before.exp()) @ state)
    near = _products(query, key, total, total, 0) @ written
    last = total[:, :, -1:]
    kept = last.exp().transpose(2, 3) * state
    after = kept + (key * (last - total).exp()).transpose(2, 3) @ written
    return near + (query * total.exp()) @ state, after


def _solve(
    inner: Float[Tensor, "B H M M"], right: Float[Tensor, "B H M Ev"]
) -> Float[Tensor, "B H M Ev"]:
    """Solve (I + inner) u = right for u, where inner is strictly lower."""
    return torch.linalg.solve_triangular(inner, right, upper=False, unitriangular=True)


def _products(
    left: Float[Tensor, "B H M E"],
    right: Float[Tensor, "B H M E"],
    left_log: Float[Tensor, "B H M D"],
    right_log: Float[Tensor, "B H M D"],
    diagonal: int,
) -> Float[Tensor, "B H M M"]:
    """Sum of left_t right_s exp(left_log_t - right_log_s) over units, for s <= t + diagonal."""
    if left_log.shape[-1] == 1:
        gap = left_log - right_log.transpose(2, 3)
        return left @ right.transpose(2, 3) * _below(gap, diagonal).exp()
    rows = []
    size = left.shape[2]
    for at in range(0, size, BLOCK):
        here = slice(at, at + BLOCK)
        row, row_log = left[:, :, here], left_log[:, :, here]
        # pairs far apart meet at the end of the block before, so that no exponent is positive
        middle = right_log[:, :, at - 1 : at] if at else row_log[:, :, :1]
        past = right[:, :, :at] * (middle - right_log[:, :, :at]).exp()
        far = (row * (row_log - middle).exp()) @ past.transpose(2, 3) if at else row[..., :0]
        gap = row_log.unsqueeze(3) - right_log[:, :, here].unsqueeze(2)
        decay = _below(gap.movedim(-1, 2), diagonal).movedim(2, -1).exp()
        near = torch.einsum("bhte,bhse,bhtse->bhts", row, right[:, :, here], decay)
        rest = near.new_zeros(*near.shape[:3], max(0, size - at - BLOCK))
        rows.append(torch.cat((far, near, rest), 3))
    return torch.cat(rows, 2)


def _below(gap: Float[Tensor, "*n M M"], diagonal: int) -> Float[Tensor, "*n M M"]:
    """Keep pairs of this diagonal and below; the others decay to zero."""
    size = gap.shape[-1]
    past = torch.ones(size, size, dtype=torch.bool, device=gap.device).tril(diagonal)
    return gap.masked_fill(~past, float("-inf"))
