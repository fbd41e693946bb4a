"""Padding of a call of `nn.MultiheadAttention`, which may stand anywhere.

Variants read padding on the right. Where it stands elsewhere, the vectors of each row are moved:
the real ones in front, in their order, and padding behind them. So nothing counts what is padding,
and nothing reads what it holds. What comes out is moved back.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from variants.multihead_masks import GivenMasks


class Asked(NamedTuple):
    """A call in the layout of this project."""

    x: Float[Tensor, "B L D"]
    """What asks."""
    source: Float[Tensor, "B S Dk"]
    """What is attended to."""
    values: Float[Tensor, "B S Dk"] | None = None
    """What values are made of; None for the source."""
    real: Bool[Tensor, "B S"] | None = None
    """True where the source is real; None where all of it is."""
    given: GivenMasks | None = None
    """Masks that are no padding on the right."""


class Moved(NamedTuple):
    """Where the vectors of a call went."""

    order: Int[Tensor, "B S"]
    """Places of the real vectors of each row, then those of its padding."""
    own: bool
    """Whether the queries are the sequence that is attended to, and move with it."""
    ahead: Bool[Tensor, "B L"] | None
    """Queries that are padding and would now see what comes after them; None where all see all."""

    @classmethod
    def of(cls, real: Bool[Tensor, "B S"], *, own: bool, causal: bool) -> "Moved":
        """Move padding behind what is real."""
        # a sort of numbers, because truth values have none on every device
        order = (~real).byte().argsort(dim=1, stable=True)
        later = real.flip(1).cumsum(1).flip(1) > 0
        return cls(order, own, ~real & later if causal else None)

    def there(self, asked: Asked) -> Asked:
        """The call with its vectors moved."""
        x = _along(asked.x, self.order, 1) if self.own else asked.x
        given = asked.given
        return Asked(
            x=x,
            source=x if self.own else _along(asked.source, self.order, 1),
            values=None if asked.values is None else _along(asked.values, self.order, 1),
            real=None if asked.real is None else _along(asked.real, self.order, 1),
            given=None if given is None else GivenMasks(*(self._of_pairs(one) for one in given)),
        )

    def back(
        self, output: Float[Tensor, "B L Dv"], weights: Float[Tensor, "B H L S"] | None
    ) -> tuple[Float[Tensor, "B L Dv"], Float[Tensor, "B H L S"] | None]:
        """What came out, at the places where the vectors were."""
        back = self.order.argsort(1)
        if weights is not None:
            weights = _along(weights, back, 3)
        if not self.own:
            return output, weights
        output = _along(output, back, 1)
        if weights is not None:
            weights = _along(weights, back, 2)
        if self.ahead is None:
            return output, weights
        if weights is not None:
            weights = weights.masked_fill(self.ahead[:, None, :, None], 0.0)
        return output.masked_fill(self.ahead.unsqueeze(-1), 0.0), weights

    def _of_pairs(self, mask: Tensor) -> Tensor:
        """A mask `#B #H #L S` of queries and keys that are moved."""
        mask = _along(mask, self.order, 3)
        # a mask of keys alone has one line for all queries
        return _along(mask, self.order, 2) if self.own and mask.shape[2] > 1 else mask


def stands_right(real: Bool[Tensor, "B S"]) -> bool:
    """Whether no padding stands before a real vector."""
    return not bool((real[:, 1:] & ~real[:, :-1]).any())


def _along(x: Tensor, order: Int[Tensor, "B n"], dim: int) -> Tensor:
    """What `x` holds along one of its axes, in the order of each row."""
    shape = [1] * x.dim()
    shape[0], shape[dim] = order.shape
    return x.take_along_dim(order.view(shape), dim)
