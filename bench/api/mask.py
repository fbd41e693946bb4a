"""Masks: which keys a query may see."""

from typing import ClassVar, Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call
from bench.api.component import Component
from bench.api.one_query import OneQuery
from bench.api.shapes import Allowed
from bench.api.source import Tree


class Windows(NamedTuple):
    """A window of keys for every query, listed one by one."""

    keys: Int[Tensor, "B Hq L W"]
    """Places of the keys; where a window reaches out of the source, any real place."""
    allowed: Bool[Tensor, "B Hq L W"]
    """Whether the query may see them."""
    log_post_weight: Float[Tensor, "B Hq L W"] | None = None
    """Logarithm of a post-softmax weight applied after normalizer."""


class Mask(Component):
    """Which keys a query may see."""

    branch = "mask"
    kind: ClassVar[Literal["full", "window", "dense"]] = "dense"
    """`full`: every key, so that fused code need not read a mask. `window`: windows that are found
    without a look at the keys, so that long sources cost linear time. `dense`: others."""
    window_width: int | None = None
    """Keys in the largest window; set where `gather` can list them."""
    reach: int | None = None
    """Greatest distance at which a query sees a key, but for the sinks, so that a cache may forget
    older keys and fused code reads a long sequence block by block; None where it may see all. A
    mask that sets it goes by places alone, and has `sees`."""
    sinks: int = 0
    """First keys that every query sees though they are far; used where `reach` is set."""
    carries: ClassVar[bool] = False
    """Whether it remembers something of the keys from call to call: `start` says what there is
    before the first one, and `advance` what there is behind the last."""
    weighs: bool = False
    """Whether `window` gives post-softmax weights, which fused code does not apply."""

    def advance(self, call: Call, state: Tree) -> Tree:
        """State once the keys of a call have come; hooks find it as `call.chosen_by`."""
        return state

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """Whether a query at one place sees a key at another, causality and padding aside."""
        raise NotImplementedError

    def window(self, call: Call) -> tuple[Allowed | None, Float[Tensor, "B Hq L S"] | None]:
        """Allowed keys (None for all), and the log of a post-softmax weight, if any.

        A mask that goes by places alone leaves this as it is, and writes `sees`.
        """
        seen = self.sees(call.position[:, None], call.key_position[None])[None, None]
        return call.within(seen), None

    def gather(self, call: Call) -> Windows:
        """`window` as a list of keys for every query, so that long sources cost linear time."""
        raise NotImplementedError

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float] | Float[Tensor, " S"]]:
        """Allowed keys of one query, and their post-softmax weights (not logarithms)."""
        raise NotImplementedError


MASKS = Axis[type[Mask]]("mask")
