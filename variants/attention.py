"""Attention as a module of a user's own model: one call, masks checked, `train()` and `eval()`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Attended, AttendOptions, Link
from bench.api.capabilities import Capability
from bench.api.errors import InvalidConfig, Refused
from bench.api.has_capabilities import HasCapabilities
from bench.api.heads import Heads
from bench.api.noise import Noise
from bench.api.slot import Slot
from bench.api.source import Memory, State, Tree
from bench.api.variant import Variant
from variants.checked_tensors import (
    Asked,
    expect_all,
    expect_declared,
    expect_tensor,
    expect_values,
    expect_vectors,
)

EXTRAS: Mapping[Capability, str] = MappingProxyType(
    {"token_extras": "word", "relations": "relation"}
)
"""Declared inputs of a query, by the capability that a part needs which reads them."""


class Attention(Slot):
    """A variant in its heads. Call it as a function, or in parts where a decoder steps.

    In `train()` mechanisms that sample draw and drop as their papers train them; in `eval()` they
    read as they are scored. Draws come from PyTorch's global generator: `torch.manual_seed` repeats
    them.

    >>> from variants import build
    >>> attention = build("additive", dim=8, source_dim=6, regime="cross")
    >>> x, source = torch.zeros(2, 3, 8), torch.zeros(2, 5, 6)
    >>> mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    >>> attention(x, source, mask=mask).shape
    torch.Size([2, 3, 6])
    """

    def __init__(
        self, heads: Heads, variant: Variant, source_width: int, link: Link | None = None
    ) -> None:
        super().__init__(heads, variant, source_width, link)
        parts = [part for part in variant.modules() if isinstance(part, HasCapabilities)]
        needs = frozenset[Capability]().union(*(part.needs for part in parts))
        self._declared = tuple(name for need, name in EXTRAS.items() if need in needs)

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        source: Float[Tensor, "B S Dk"] | None = None,
        *,
        mask: Tensor | None = None,
        tokens: Int[Tensor, "B S"] | None = None,
        extras: Tree | None = None,
        below: Memory | None = None,
        progress: float = 1.0,
    ) -> Float[Tensor, "B L Dv"]:
        """Attend from every vector of `x`, all at once.

        Args:
            x: What asks; under self-attention also what is attended to.
            source: What is attended to; left out under self-attention.
            mask: `B S`, True (or 1) where what is attended to is real. Padding is on the right.
            tokens: Ids of what is attended to, for variants that look at them.
            extras: Declared inputs of each query, such as `{"word": ...}`.
            below: What the layer of `link` attended to; `answer_all` returns it as `memory` under
                `want_memory=True`. Left out where there is no link.
            progress: Share of training that is done, for options that go by it, such as `warm_up`
                or a temperature that falls; 1 is as after training.

        Raises:
            InvalidConfig: The source is missing, superfluous or empty, the mask is no mask, or a
                tensor has another shape.
        """
        regime = self.heads.dims.regime
        expect_vectors("the queries", x, self.heads.dims.model_width)
        own = regime in ("causal", "self")
        if own and source is not None and source is not x:
            raise InvalidConfig(
                f'this attention was built with regime="{regime}" and attends to its own queries; '
                'leave the source out, or build it with regime="cross".'
            )
        if not own and source is None:
            raise InvalidConfig(
                f'this attention was built with regime="{regime}" and needs a source; '
                'call attention(x, source), or build it with regime="self".'
            )
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.output_width)
        seen = x if source is None else source
        call: AttendOptions = {"extras": extras, "want_weights": False, "progress": progress}
        return self.answer_all(x, seen, mask, tokens, below, **call)[0]

    def answer_all(
        self,
        x: Float[Tensor, "B L D"],
        source: Float[Tensor, "B S Dk"],
        mask: Tensor | None = None,
        tokens: Int[Tensor, "B S"] | None = None,
        below: Memory | None = None,
        **call: Unpack[AttendOptions],
    ) -> tuple[Float[Tensor, "B L Dv"], Attended]:
        """Attend from every vector of `x`, and return the weights and what else `attend` does.

        Under self-attention `source` is `x`.
        """
        if self.heads.dims.regime == "causal":
            own = (x, mask, tokens)
            state = self.start(None, x)
            return self._answer(x, None, state, whole=True, own=own, below=below, **call)
        memory = self.prepare(source, mask, tokens)
        return self.attend(x, memory, self.start(memory, x), **call)

    def prepare(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Tensor | None = None,
        tokens: Tensor | None = None,
        values: Float[Tensor, "B S Dk"] | None = None,
    ) -> Memory:
        """Project a source and let the variant prepare it; see `Slot.prepare`.

        Raises:
            InvalidConfig: There is nothing to attend to, the mask is no mask, or the source or its
                values have another shape.
        """
        expect_vectors("the source", x, self.source_width)
        if values is not None:
            expect_values(values, x)
        return super().prepare(x, key_mask(mask, x), tokens, values)

    def attend(
        self,
        x: Float[Tensor, "B L D"],
        memory: Memory | None,
        state: State,
        *,
        own: tuple[Tensor, Tensor | None, Tensor | None] | None = None,
        below: Memory | None = None,
        **call: Unpack[AttendOptions],
    ) -> tuple[Float[Tensor, "B L Dv"], Attended]:
        """Answer some queries; see `Slot.attend`. `read` and `noise` follow `train()` and `eval()`.

        Raises:
            InvalidConfig: There is nothing to attend to, the mask is no mask, queries have another
                shape or another number of rows than their source, pooling has more than one query,
                or a declared input is missing or has another shape, type or range.
            Refused: A layer below is read, and what it attended to is missing.
        """
        whole = memory is not None
        return self._answer(x, memory, state, whole=whole, own=own, below=below, **call)

    def _answer(
        self,
        x: Float[Tensor, "B L D"],
        memory: Memory | None,
        state: State,
        *,
        whole: bool,
        own: tuple[Tensor, Tensor | None, Tensor | None] | None = None,
        below: Memory | None = None,
        **call: Unpack[AttendOptions],
    ) -> tuple[Float[Tensor, "B L Dv"], Attended]:
        """`attend`, where it is known whether more keys come later.

        Args:
            x: The next vectors that ask.
            memory: What `prepare` made of a source; None under causal self-attention.
            state: What the previous call returned.
            whole: Whether no more keys come later.
            own: Sequence, mask and tokens under causal self-attention.
            below: What the layer of `link` attended to.
            call: How to answer.
        """
        if self.link is not None and below is None:
            raise Refused(
                f"this layer reads layer {self.link.layer}; hand on what that one attended to as "
                "`below`, which it returns as `memory` under want_memory=True."
            )
        self._expect_queries(x, memory, state)
        rows, queries, _ = x.shape
        keys = state.offset + queries if memory is None else memory.num_keys
        asked = Asked(rows, queries, keys, whole)
        expect_declared(self._declared, call.get("extras"), asked, self.variant.dims)
        if own is not None:
            own = (own[0], key_mask(own[1], own[0]), own[2])
        if self.training and call.get("read") is None:
            call["read"] = "train"
        read = call.get("read") or self.variant.default_read
        draws = read in ("train", "sample") and read in self.variant.reads
        if draws and call.get("noise") is None:
            call["noise"] = _noise()
        return super().attend(x, memory, state, own=own, below=below, **call)

    def _expect_queries(self, x: Tensor, memory: Memory | None, state: State) -> None:
        """Refuse queries that do not fit the attention or their source."""
        dims = self.heads.dims
        expect_vectors("the queries", x, dims.model_width)
        if memory is not None and memory.source.key.shape[0] != x.shape[0]:
            raise InvalidConfig(
                f"queries have {x.shape[0]} rows and their source has "
                f"{memory.source.key.shape[0]}; hand on one source for each row of queries."
            )
        count = state.offset + x.shape[1]
        if dims.regime == "pool" and count > 1:
            raise InvalidConfig(
                f'this attention was built with regime="pool" and answers one query, got {count}; '
                'build it with regime="cross" to ask several.'
            )


def key_mask(mask: Tensor | None, x: Tensor) -> Tensor | None:
    """Check a mask of what is attended to, and make it one of truth values.

    Raises:
        InvalidConfig: It is no tensor, or has another shape, other values than 0 and 1, or padding
            on the left.
    """
    if x.shape[1] == 0:
        raise InvalidConfig("there is nothing to attend to: the source has no positions.")
    if mask is None:
        return None
    expect_tensor("the mask", mask)
    if mask.shape != x.shape[:2]:
        raise InvalidConfig(
            f"the mask must have shape {tuple(x.shape[:2])}, one value for each vector that is "
            f"attended to, got {tuple(mask.shape)}."
        )
    if mask.dtype != torch.bool:
        expect_all(
            (mask == 0) | (mask == 1),
            "a mask must be True (or 1) where a vector is real and False (or 0) where it is "
            "padding; this one has other values.",
        )
        mask = mask != 0
    expect_all(
        mask[:, :-1] | ~mask[:, 1:],
        "the mask has padding before real vectors; move the padding to the right, because places "
        "are counted from the first vector.",
    )
    return mask


def _noise() -> Noise:
    """A family of draws that PyTorch's global generator names."""
    return Noise(int(torch.randint(2**31, ())))
