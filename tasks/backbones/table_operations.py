"""Operations on a table that can be mixed: every one is computed, and weights choose among them.

Neelakantan, Le & Sutskever, 2016, "Neural programmer: inducing latent programs with gradient
descent", https://arxiv.org/abs/1511.04834, section 2.3 and table 1.
"""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

OPERATIONS = ("sum", "max", "min", "count", "greater", "lesser", "reset")
"""The first four give a number, the others rows."""


class Executed(NamedTuple):
    """What one step of a program leaves."""

    number: Float[Tensor, " B"]
    rows: Float[Tensor, "B R"]
    """How far each row is selected, from 0 to 1."""


def execute(
    table: Float[Tensor, "B R C"],
    pivot: Float[Tensor, " B"],
    rows: Float[Tensor, "B R"],
    operation: Float[Tensor, "B P"],
    column: Float[Tensor, "B C"],
) -> Executed:
    """Mix the results of all operations on all columns.

    Args:
        table: Numbers between 0 and 1.
        pivot: What `greater` and `lesser` compare with.
        rows: Selected by the step before.
        operation: Weights of the operations, in their order.
        column: Weights of the columns.
    """
    share = dict(zip(OPERATIONS, operation.unbind(1), strict=True))
    chosen = rows.unsqueeze(-1)
    by_column = share["sum"].unsqueeze(1) * (chosen * table).sum(1)
    by_column = by_column + share["max"].unsqueeze(1) * (chosen * table).amax(1)
    # the smallest of the selected is one less the largest of what they lack to one
    by_column = by_column + share["min"].unsqueeze(1) * (1 - (chosen * (1 - table)).amax(1))
    number = share["count"] * rows.sum(1) + (column * by_column).sum(1)
    above = (table > pivot[:, None, None]).to(column.dtype) @ column.unsqueeze(-1)
    below = (table < pivot[:, None, None]).to(column.dtype) @ column.unsqueeze(-1)
    kept = share["greater"].unsqueeze(1) * above.squeeze(-1)
    kept = kept + share["lesser"].unsqueeze(1) * below.squeeze(-1)
    return Executed(number, kept + share["reset"].unsqueeze(1))
