"""Random draws addressed by where they are used.

The draw for (row, head, query, key) does not depend on how many queries come at once or how much
padding follows, so a stochastic mechanism gives the same result stepwise and in parallel.
"""

import zlib
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9, the multipliers of SplitMix64
_SECOND = -7723592293110705685  # 0x94D049BB133111EB


LAYER_STRIDE, SOURCE_STRIDE, BACKWARDS = 2**40, 2**50, 2**60
"""Between the noise of two layers, further than the seeds of a training run reach; between that of
two sources, further than layers reach; and to that of the other direction, further than both."""


@dataclass(frozen=True)
class Noise:
    """A family of streams of uniform numbers under one seed."""

    seed: int

    def of_layer(self, index: int) -> "Noise":
        """The same for one layer of a stack, independent of that of the others."""
        return Noise(self.seed + index * LAYER_STRIDE)

    def of_source(self, index: int) -> "Noise":
        """The same for one of several sources, independent of that of the others."""
        return Noise(self.seed + index * SOURCE_STRIDE)

    def backwards(self) -> "Noise":
        """The same for the other direction of a pair, independent of that of the first."""
        return Noise(self.seed + BACKWARDS)

    def uniform(
        self, stream: str, rows: int, heads: int, position: Int[Tensor, " L"], num_keys: int
    ) -> Float[Tensor, "B H L S"]:
        """Draw from the open interval (0, 1), in float32.

        Args:
            stream: Name of the use, so that two uses in one step are independent.
            rows: Batch size B.
            heads: H.
            position: Absolute query positions.
            num_keys: S; pass 1 for one draw a query.
        """
        device = position.device
        base = (self.seed * 1_000_003 + _number(stream)) % 2**63
        start = torch.full((1, 1, 1, 1), base, dtype=torch.int64, device=device)
        row = torch.arange(rows, device=device).view(-1, 1, 1, 1)
        head = torch.arange(heads, device=device).view(1, -1, 1, 1)
        key = torch.arange(num_keys, device=device).view(1, 1, 1, -1)
        address = _scramble(_scramble(start) + row)
        address = _scramble(address + head)
        address = _scramble(address + position.view(1, 1, -1, 1))
        address = _scramble(address + key)
        # 23 bits and a half are exact in float32 and never 0 or 1, so logarithms are finite
        return (((address >> 41) & 0x7FFFFF).float() + 0.5) / 2**23

    def gumbel(
        self, stream: str, rows: int, heads: int, position: Int[Tensor, " L"], num_keys: int
    ) -> Float[Tensor, "B H L S"]:
        """Standard Gumbel draws; the argmax of scores plus these samples the softmax."""
        return -torch.log(-torch.log(self.uniform(stream, rows, heads, position, num_keys)))

    def normal(
        self, stream: str, rows: int, heads: int, position: Int[Tensor, " L"], num_keys: int
    ) -> Float[Tensor, "B H L S"]:
        """Standard normal draws by the inverse error function."""
        uniform = self.uniform(stream, rows, heads, position, num_keys)
        return torch.erfinv(2 * uniform - 1) * 2**0.5


DRAWS = Noise(0)
"""What mechanisms that sample when they are scored draw from; the same in every evaluation."""


def _number(stream: str) -> int:
    """The number of a stream; a compiled graph takes it as the constant it is."""
    return zlib.crc32(stream.encode())


# all that torch.compiler.assume_constant_result does, after importing the compiler for a second
_number._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _scramble(x: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """SplitMix64's finalizer; the masks make torch's arithmetic shift a logical one."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _FIRST
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return x ^ ((x >> 31) & 0x1FFFFFFFF)
