"""Norms of queries and keys, which keep energies small however long the vectors grow."""

import math
from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.errors import InvalidConfig
from bench.api.start import Starting

QueryKeyNormName = Literal["none", "rms", "l2"]
"""No norm, root mean square with gains, or unit length with a learned scale."""

EPS = 1e-6
"""Added to a mean square, and the least length that a vector is divided by."""


class QueryKeyNorm(Starting):
    """Rescales queries and keys, each head by itself."""

    @abstractmethod
    def query(self, x: Float[Tensor, "B H L E"]) -> Float[Tensor, "B H L E"]:
        """Rescale queries."""

    @abstractmethod
    def key(self, x: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H S E"]:
        """Rescale keys."""

    @abstractmethod
    def oracle_query(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """`query` for one vector."""

    @abstractmethod
    def oracle_key(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """`key` for one vector."""


class RmsNorm(QueryKeyNorm):
    """Divides by the root mean square, and multiplies every unit by a gain that heads share."""

    starts = {"query_gain": 1.0, "key_gain": 1.0}

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query_gain = nn.Parameter(torch.ones(width))
        self.key_gain = nn.Parameter(torch.ones(width))

    def query(self, x: Float[Tensor, "B H L E"]) -> Float[Tensor, "B H L E"]:
        """Divide, and multiply by the gains of queries."""
        return nn.functional.rms_norm(x, self.query_gain.shape, self.query_gain, EPS)

    def key(self, x: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H S E"]:
        """Divide, and multiply by the gains of keys."""
        return nn.functional.rms_norm(x, self.key_gain.shape, self.key_gain, EPS)

    def oracle_query(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """One unit after the other."""
        return _oracle_rms(x, self.query_gain)

    def oracle_key(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """One unit after the other."""
        return _oracle_rms(x, self.key_gain)


class UnitNorm(QueryKeyNorm):
    """Makes vectors one long; their product, a cosine, is multiplied by a learned scale.

    The square root of the width undoes the division that follows in a scaled dot product.
    """

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        if length < 2:
            raise InvalidConfig(f"the length of unit norms must be at least 2, got {length}.")
        start = math.log2(length * length - length)
        self.starts = {"scale": start}
        self.scale = nn.Parameter(torch.tensor(start))
        self.undo = math.sqrt(width)

    def query(self, x: Float[Tensor, "B H L E"]) -> Float[Tensor, "B H L E"]:
        """A vector of unit length times the scale."""
        return nn.functional.normalize(x, dim=-1, eps=EPS) * (self.scale * self.undo)

    def key(self, x: Float[Tensor, "B H S E"]) -> Float[Tensor, "B H S E"]:
        """A vector of unit length."""
        return nn.functional.normalize(x, dim=-1, eps=EPS)

    def oracle_query(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """One unit after the other."""
        return torch.stack([unit * self.scale * self.undo for unit in _oracle_unit(x)])

    def oracle_key(self, x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
        """One unit after the other."""
        return torch.stack(_oracle_unit(x))


def query_key_norm(name: QueryKeyNormName, width: int, length: int) -> QueryKeyNorm | None:
    """Build a norm for vectors of a width; None for `none`."""
    if name == "none":
        return None
    return RmsNorm(width) if name == "rms" else UnitNorm(width, length)


def _oracle_rms(x: Float[Tensor, " E"], gain: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
    mean = sum((unit * unit for unit in x), torch.zeros_like(x[0])) / len(x)
    return torch.stack(
        [unit / torch.sqrt(mean + EPS) * own for unit, own in zip(x, gain, strict=True)]
    )


def _oracle_unit(x: Float[Tensor, " E"]) -> list[Float[Tensor, ""]]:
    length = torch.sqrt(sum((unit * unit for unit in x), torch.zeros_like(x[0])))
    return [unit / length.clamp(min=EPS) for unit in x]
