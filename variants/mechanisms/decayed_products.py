"""Products of steps with earlier steps, where each unit has a decay of its own.

The decay of unit e between step s and a later step t is exp(T_t[e] - T_s[e]), where T sums the
logarithms of decays. Only differences that are not positive are exponentiated, so that nothing
overflows (Yang et al., 2024, section 4.3, https://arxiv.org/abs/2312.06635).

Steps of a short block are compared pair by pair. Then neighboring blocks are joined, twice as long
each time. Steps of the later block and those of the earlier one meet at the end of the earlier
one, so that no difference is positive, and all joins of a round are one product of matrices.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

BLOCK = 4
"""Steps that are compared pair by pair.

Of 2, 4, 8 and 16 it is the fastest on a CPU core (forward and backward of 32 to 80 steps)."""


def decayed_products(
    left: Float[Tensor, "*n M E"],
    right: Float[Tensor, "*n M E"],
    left_log: Float[Tensor, "*n M D"],
    right_log: Float[Tensor, "*n M D"],
    diagonal: int,
) -> Float[Tensor, "*n M M"]:
    """Sum of left_t right_s exp(left_log_t - right_log_s) over units, for s <= t + diagonal.

    Args:
        left: Of the later steps.
        right: Of the earlier steps.
        left_log: Logarithm of the decay up to a later step, of all units or of each.
        right_log: Logarithm of the decay up to an earlier step.
        diagonal: 0 where a step meets itself, -1 where it does not.
    """
    if left_log.shape[-1] == 1:
        gap = left_log - right_log.mT
        return left @ right.mT * gap.masked_fill(~_past(gap, diagonal), float("-inf")).exp()
    size = left.shape[-2]
    left, right, right_log = _in_blocks(left), _in_blocks(right), _in_blocks(right_log)
    # behind the last step both logarithms are the same, or their difference would be positive
    left_log = _in_blocks(left_log, right_log[..., -1, -1:, :])
    pairs = left.unsqueeze(-2) * right.unsqueeze(-3)
    found = (pairs * _decay(left_log, right_log, diagonal)).sum(-1)
    while found.shape[-3] > 1:
        late, late_log = left[..., 1::2, :, :], left_log[..., 1::2, :, :]
        early, early_log = right[..., ::2, :, :], right_log[..., ::2, :, :]
        middle = early_log[..., -1:, :]
        far = (late * (late_log - middle).exp()) @ (early * (middle - early_log).exp()).mT
        above = torch.cat((found[..., ::2, :, :], torch.zeros_like(far)), -1)
        below = torch.cat((far, found[..., 1::2, :, :]), -1)
        found = torch.cat((above, below), -2)
        left, right, left_log, right_log = map(_joined, (left, right, left_log, right_log))
    return found.squeeze(-3)[..., :size, :size]


def decayed_sums(
    query: Float[Tensor, "*n M w"],
    key: Float[Tensor, "*n M w"],
    value: Float[Tensor, "*n M E"],
    log: Float[Tensor, "*n M E"],
) -> Float[Tensor, "*n M E"]:
    """Sum of (query_t . key_s) value_s exp(log_t - log_s) over s <= t, unit by unit.

    Args:
        query: Of the later steps.
        key: Of the earlier steps.
        value: Of the earlier steps.
        log: Logarithm of the decay of each unit up to a step.
    """
    size = query.shape[-2]
    query, key, value, log = map(_in_blocks, (query, key, value, log))
    products = (query @ key.mT).unsqueeze(-1)
    found = (products * _decay(log, log, 0) * value.unsqueeze(-3)).sum(-2)
    while found.shape[-3] > 1:
        early_log, late_log = log[..., ::2, :, :], log[..., 1::2, :, :]
        middle = early_log[..., -1:, :]
        kept = value[..., ::2, :, :] * (middle - early_log).exp()
        far = query[..., 1::2, :, :] @ key[..., ::2, :, :].mT @ kept
        later = found[..., 1::2, :, :] + far * (late_log - middle).exp()
        found = torch.cat((found[..., ::2, :, :], later), -2)
        query, key, value, log = map(_joined, (query, key, value, log))
    return found.squeeze(-3)[..., :size, :]


def _in_blocks(
    x: Float[Tensor, "*n M E"], behind: Float[Tensor, "*n 1 E"] | None = None
) -> Float[Tensor, "*n N C E"]:
    """Steps in 1, 2, 4, 8 ... blocks, which are filled behind the last step.

    What stands there is no earlier step of any other. By default it is the last step again.
    """
    size = x.shape[-2]
    if size <= BLOCK:
        return x.unsqueeze(-3)
    blocks = 1 << (-(-size // BLOCK) - 1).bit_length()
    behind = x[..., -1:, :] if behind is None else behind
    more = behind.expand(*x.shape[:-2], blocks * BLOCK - size, -1)
    return torch.cat((x, more), -2).unflatten(-2, (blocks, BLOCK))


def _joined(x: Float[Tensor, "*n N C E"]) -> Float[Tensor, "*n K J E"]:
    """Each two neighboring blocks as one."""
    return x.unflatten(-3, (-1, 2)).flatten(-3, -2)


def _decay(
    left_log: Float[Tensor, "*n M E"], right_log: Float[Tensor, "*n M E"], diagonal: int
) -> Float[Tensor, "*n M M E"]:
    """Decay of each unit between each two steps; 0 beyond the diagonal."""
    gap = left_log.unsqueeze(-2) - right_log.unsqueeze(-3)
    return gap.masked_fill(~_past(gap, diagonal).unsqueeze(-1), float("-inf")).exp()


def _past(rows: Tensor, diagonal: int) -> Bool[Tensor, "M M"]:
    """Pairs of steps of this diagonal and below; `rows` has a row for each step."""
    size = rows.shape[-2]
    return torch.ones(size, size, dtype=torch.bool, device=rows.device).tril(diagonal)
