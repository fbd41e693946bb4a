"""Heads: the projections around attention, from the width of a model to heads and back."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Dims, Link, QueryShape
from bench.api.config import Config
from bench.api.errors import Refused
from bench.api.has_capabilities import HasCapabilities
from bench.api.shapes import Query
from bench.api.source import Source, Tree


class Heads(HasCapabilities):
    """Owns every projection of a slot: model width to heads and back."""

    dims: Dims
    output_width: int
    gates: bool = False
    """Whether `gate` changes what was read: there are norms or gates. The certificate asks it."""
    any_width: bool = False
    """Whether what is between these heads answers vectors of any width; a slot says so."""

    def __init__(
        self,
        config: Config,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__()

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B Hq L Eq"]:
        """Make the queries."""
        raise NotImplementedError

    def source(
        self, x: Float[Tensor, "B S Dk"], mask: Tensor | None, tokens: Tensor | None
    ) -> Source:
        """Make keys and values."""
        raise NotImplementedError

    def written(self, source: Source, query: Query) -> Source:
        """Keys and values as some queries want them, where that is not how they are kept.

        Asked where `any_width` is true, and for the time of a call alone.

        Args:
            source: What is kept; its keys are turned already.
            query: What `query` made.
        """
        return source

    def start(self, like: QueryShape) -> Tree:
        """What is remembered before the first state of a sequence; empty for most."""
        return {}

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Tensor | None,
        tokens: Tensor | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """Queries and keys of one sequence, and what must be remembered of it.

        Heads whose projections see earlier states (short convolutions) replace this; others make
        queries and keys of each state by itself. What is remembered are real states (`last_real`),
        so that padding behind a prompt changes nothing; `without_padding` hides what it holds.

        Args:
            x: The next states of the sequence.
            mask: Which of them are real.
            tokens: Their ids.
            past: What the previous call returned.
        """
        return self.query(x), self.source(x, mask, tokens), past

    def link(self, below: tuple[int, ...]) -> Link | None:
        """What these heads read of a layer below; None for nothing.

        Called once, by a slot that is built. Heads that read another layer leave out here the maps
        that they do not need.

        Args:
            below: Layers below that hold the same attention and hand on their keys and values.
        """
        return None

    def own_above(
        self,
        x: Float[Tensor, "B L D"],
        mask: Tensor | None,
        tokens: Tensor | None,
        past: Tree,
        below: Source,
    ) -> tuple[Query, Source, Tree]:
        """`own` where a layer below is read, unless it keeps everything for this one.

        Args:
            x: The next states of the sequence.
            mask: Which of them are real.
            tokens: Their ids.
            past: What the previous call returned.
            below: Keys and values of the same places in the layer below; keys are turned already.
        """
        raise NotImplementedError

    def gate(
        self, output: Float[Tensor, "B Hq L Ev"], x: Float[Tensor, "B L D"]
    ) -> Float[Tensor, "B Hq L Ev"]:
        """Norms and gates of each head, before the heads are joined; `x` is what asked."""
        return output

    def refuse_gates(self) -> None:
        """Refuse heads whose output is no linear map of what they read.

        Raises:
            Refused: There are norms or gates behind the reading.
        """
        if self.gates:
            raise Refused("these heads have gates or norms, so single values add no fixed share.")

    def merge(self, output: Float[Tensor, "B Hq L Ev"]) -> Float[Tensor, "B L D"]:
        """Join the heads."""
        raise NotImplementedError

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "Hq Eq"]:
        """`query` for one query, head by head."""
        raise NotImplementedError

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "Hk Ek"], Float[Tensor, "Hv Ev"]]:
        """Key and value of one state, head by head."""
        raise NotImplementedError

    def oracle_own(
        self, x: Float[Tensor, "L D"]
    ) -> tuple[Float[Tensor, "Hq L Eq"], Float[Tensor, "Hk L Ek"], Float[Tensor, "Hv L Ev"]]:
        """`own` for one whole sequence: queries, keys and values."""
        query = torch.stack([self.oracle_query(state) for state in x], 1)
        made = [self.oracle_source(state) for state in x]
        key, value = (torch.stack([pair[i] for pair in made], 1) for i in range(2))
        return query, key, value

    def oracle_above(
        self, x: Float[Tensor, "L D"], below: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Float[Tensor, "Hk L Ek"], Float[Tensor, "Hv L Ev"]]:
        """Queries, keys and values of one whole sequence above a layer that is read.

        Args:
            x: Its states.
            below: Keys and values of the layer below, one row; keys are not turned yet.
        """
        raise NotImplementedError

    def oracle_gate(
        self, output: Float[Tensor, "Hq Ev"], x: Float[Tensor, " D"]
    ) -> Float[Tensor, "Hq Ev"]:
        """`gate` for one query."""
        return output

    def oracle_merge(self, output: Float[Tensor, "Hq Ev"]) -> Float[Tensor, " Dv"]:
        """`merge` for one query, by loops over heads."""
        raise NotImplementedError


def expand_heads(x: Float[Tensor, "B Hk S E"], heads: int) -> Float[Tensor, "B Hq S E"]:
    """Repeat key heads so that every query head has one (grouped queries)."""
    if x.shape[1] == heads:
        return x
    if x.shape[1] == 1:  # a view, which fused code reads without a copy
        return x.expand(-1, heads, -1, -1)
    return torch.repeat_interleave(x, heads // x.shape[1], 1)


def without_padding(
    x: Float[Tensor, "B L D"], mask: Bool[Tensor, "B L"] | None
) -> Float[Tensor, "B L D"]:
    """States for projections that see earlier ones: padding is zero, like what is before the first.

    So padding in front of a sequence counts as nothing, and padding within it as states of zeros.

    Args:
        x: States of one call.
        mask: Which of them are real; None where all are.
    """
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


def last_real(
    x: Shaped[Tensor, "B *H n E"], mask: Bool[Tensor, "B L"] | None, count: int
) -> Shaped[Tensor, "B *H m E"]:
    """The last real states of each row, which the first states of the next call will see.

    Args:
        x: At least `count` states that were remembered, then those of this call.
        mask: Which states of this call are real; None where all are.
        count: How many are remembered.
    """
    states = x.shape[-2]
    if mask is None:
        return x[..., states - count :, :].clone()  # without the memory of the states before
    # nothing waits for a GPU: places of padding are sorted in front of those that are taken
    real = torch.cat((mask.new_ones(len(mask), states - mask.shape[1]), mask), 1)
    place = torch.where(real, torch.arange(states, device=mask.device), -1)
    last = place.sort(1).values[:, states - count :]
    return x.take_along_dim(last.view(len(mask), *[1] * (x.dim() - 3), count, 1), -2)


HEADS = Axis[type[Heads]]("head")
