"""Keys and values that a cache keeps as fewer numbers than they are, and writes out to be read."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Key, Value

Turn = Callable[[Float[Tensor, "B n S E"]], Float[Tensor, "B n S E"]]
"""What positions do to vectors as wide as keys, whatever the second axis counts."""


class Packing(ABC):
    """How keys and values are written out of the numbers that are kept of them.

    A packed source has these numbers in the place of its keys, under one head. A subclass is a
    frozen dataclass of sizes; it holds no tensors, for states do not own parameters.
    """

    reads_packed: ClassVar[bool] = False
    """Whether `read` answers a single query, so that no key is written out for it."""

    @abstractmethod
    def turned(self, packed: Float[Tensor, "B 1 S F"], turn: Turn) -> Float[Tensor, "B 1 S F"]:
        """What is kept of keys that positions have turned; the values stay."""

    def read(
        self,
        query: Float[Tensor, "B Hq 1 Eq"],
        packed: Float[Tensor, "B 1 S F"],
        *,
        mask: Tensor | None,
        scale: float,
    ) -> Float[Tensor, "B Hq 1 Ev"]:
        """What a softmax over scaled dot products reads for a single query, as `fused_softmax`.

        Asked where `reads_packed` is true.

        Args:
            query: One query of each head.
            packed: What is kept.
            mask: True where a key is seen, or what is added to the energies, `#B #Hq 1 S`; None
                where every key is seen and nothing added.
            scale: Factor of the dot products.
        """
        raise NotImplementedError

    @abstractmethod
    def written(self, packed: Float[Tensor, "B 1 S F"]) -> tuple[Key, Value]:
        """Keys and values of all heads."""
