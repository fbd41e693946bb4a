"""Masks that come with a call of `nn.MultiheadAttention`, put into a chain that has its own."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.chain import Chain
from bench.api.config import NoOptions
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask
from bench.api.position import Position
from bench.api.shapes import Allowed
from bench.api.source import Source, Tree

ALLOWED, ADDED = "attn_allowed", "attn_added"
"""Extra inputs of a call: keys that each query may see, and what is added to its energies."""


class GivenMask(Mask):
    """The chain's own mask and the one that came with the call."""

    def __init__(self, own: Mask, dims: Dims) -> None:
        super().__init__(NoOptions(), dims)
        self.own = own
        self.weighs = own.weighs

    def prepare(self, source: Source) -> Tree:
        """What the chain's own mask prepares."""
        return self.own.prepare(source)

    def window(self, call: Call) -> tuple[Allowed | None, Float[Tensor, "B Hq L S"] | None]:
        """Keys that both allow."""
        allowed, log_post_weight = self.own.window(call)
        given = call.extras[ALLOWED]
        assert isinstance(given, Tensor)
        # a part of a call has only the keys up to its queries
        given = given.transpose(1, 2)[..., : call.memory.num_keys]
        return (given if allowed is None else allowed & given), log_post_weight


class GivenEnergies(Position):
    """Numbers that came with the call, added to the energies."""

    changes_energy = True

    def energy(self, call: Call) -> Float[Tensor, "#B #Hq L S"]:
        """The numbers of these queries."""
        given = call.extras[ADDED]
        assert isinstance(given, Tensor)
        return given.transpose(1, 2)[..., : call.memory.num_keys]


def with_given_mask(chain: Chain) -> Chain:
    """A chain of the same components that also applies the masks of the call."""
    dims = chain.dims
    return Chain(
        dims,
        score=chain.score,
        mask=GivenMask(chain.mask, dims),
        normalizer=chain.normalizer,
        readout=chain.readout,
        positions=(*chain.positions, GivenEnergies(NoOptions(), dims)),
        histories=chain.histories,
    )


class GivenMasks(NamedTuple):
    """What masks of a call say, as PyTorch's documentation defines them."""

    allowed: Bool[Tensor, "#B #H #L S"]
    """True where a query may see a key."""
    added: Float[Tensor, "#B #H #L S"]
    """What is added to energies; 0 where a mask says nothing."""

    def extras(self, rows: int, queries: int) -> dict[str, Tensor]:
        """Inputs of the call, rows and queries written out."""

        def by_query(mask: Tensor) -> Tensor:
            return mask.expand(rows, -1, queries, -1).transpose(1, 2)

        return {ALLOWED: by_query(self.allowed), ADDED: by_query(self.added)}

    def join(self, other: "GivenMasks | None") -> "GivenMasks":
        """Both masks at once."""
        if other is None:
            return self
        return GivenMasks(self.allowed & other.allowed, self.added + other.added)


def read_attention_mask(
    mask: Tensor, heads: int, shape: tuple[int, int, int], dtype: torch.dtype
) -> GivenMasks:
    """Read `attn_mask`: `L S` for all rows and heads, or `(B H) L S` for each.

    Args:
        mask: True or -inf where a query may not see a key; other numbers are added to energies.
        heads: Number of heads.
        shape: Rows, queries and keys.
        dtype: Of the energies.

    Raises:
        InvalidConfig: It has another shape, or is neither of truth values nor of numbers.
    """
    rows, queries, keys = shape
    if mask.shape == (queries, keys):
        mask = mask[None, None]
    elif mask.shape == (rows * heads, queries, keys):
        mask = mask.unflatten(0, (rows, heads))
    else:
        raise InvalidConfig(
            f"attn_mask must have shape {(queries, keys)} or {(rows * heads, queries, keys)}, "
            f"got {tuple(mask.shape)}."
        )
    return _read(mask, dtype, "attn_mask")


def read_padding_mask(mask: Tensor, shape: tuple[int, int], dtype: torch.dtype) -> GivenMasks:
    """Read `key_padding_mask`, `B S`, as a mask of every query and head.

    Raises:
        InvalidConfig: It has another shape, or is neither of truth values nor of numbers.
    """
    if mask.shape != shape:
        raise InvalidConfig(f"key_padding_mask must have shape {shape}, got {tuple(mask.shape)}.")
    return _read(mask[:, None, None], dtype, "key_padding_mask")


def _read(mask: Tensor, dtype: torch.dtype, name: str) -> GivenMasks:
    if mask.dtype == torch.bool:
        return GivenMasks(~mask, torch.zeros((), dtype=dtype, device=mask.device).expand_as(mask))
    if not mask.is_floating_point():
        raise InvalidConfig(f"{name} must hold truth values or numbers, got {mask.dtype}.")
    allowed = mask != float("-inf")
    return GivenMasks(allowed, torch.where(allowed, mask, 0.0).to(dtype))
