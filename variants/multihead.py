"""A variant that replaces `torch.nn.MultiheadAttention`: it is called alike and answers alike.

A variant with plain multi-head projections has the same state, too: weights of
`nn.MultiheadAttention` load into it and the other way round.
"""

import copy
from functools import partial
from typing import Any, TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import AttendOptions, Call
from bench.api.chain import Chain
from bench.api.errors import InvalidConfig, Refused, UnknownName
from variants.attention import Attention, expect_all
from variants.heads.multi import MultiHeads
from variants.multihead_masks import (
    GivenMasks,
    read_attention_mask,
    read_padding_mask,
    with_given_mask,
)
from variants.multihead_state import pack, unpack
from variants.own_model import build


class MultiheadOptions(TypedDict, total=False):
    """Options of `as_multihead`; those that `nn.MultiheadAttention` has mean the same."""

    dropout: float
    """Probability with which a weight is dropped in training; 0 if not given."""
    bias: bool
    """Whether plain heads have biases; True if not given."""
    batch_first: bool
    """Whether tensors are batch by length by width; False if not given."""
    kdim: int | None
    """Width of keys; that of the queries if not given. Another one needs `cross`."""
    vdim: int | None
    """Width of values, which is that of keys."""
    causal: bool
    """Whether a query sees keys up to its own place alone, with or without `attn_mask`."""
    cross: bool
    """Whether it attends to another sequence than its queries, as in a decoder layer."""
    attention_only: bool
    """Whether what a variant has besides its attention, as an output layer, a loss or positions of
    the input of a network, may be left out; False if not given."""


class NotPacked:
    """Stands where PyTorch's fast path looks for packed weights, and keeps it from being taken.

    Transformer layers compute attention by fused code of their own, past the module, unless one of
    its weights has a `__torch_function__`.
    """

    weight: "NotPacked"
    bias: "NotPacked"

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        """Answer no operation."""
        return NotImplemented


NOT_PACKED = NotPacked()
NOT_PACKED.weight = NOT_PACKED.bias = NOT_PACKED


class MultiheadAttention(nn.Module):
    """A variant that is called like `nn.MultiheadAttention`."""

    in_proj_weight = NOT_PACKED
    in_proj_bias = NOT_PACKED
    out_proj = NOT_PACKED
    _qkv_same_embed_dim = True
    """Transformer layers ask for it before they look at weights."""

    def __init__(
        self, variant: str, embed_dim: int, num_heads: int, **options: Unpack[MultiheadOptions]
    ) -> None:
        super().__init__()
        _expect_known(options)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.batch_first = options.get("batch_first", False)
        self.dropout = options.get("dropout", 0.0)
        self.causal, self.cross = options.get("causal", False), options.get("cross", False)
        if self.causal and self.cross:
            raise Refused("attention to another sequence has no causal order; leave one out.")
        source_dim = options.get("kdim") or embed_dim
        if (options.get("vdim") or embed_dim) != source_dim:
            raise Refused("keys and values come from states of one width; kdim and vdim are equal.")
        if source_dim != embed_dim and not self.cross:
            raise Refused("keys of another width are another sequence; build it with cross=True.")
        self.attention = build(
            variant,
            dim=embed_dim,
            heads=num_heads,
            source_dim=source_dim,
            regime="causal" if self.causal else "cross" if self.cross else "self",
            projection_bias=options.get("bias", True),
            attention_only=options.get("attention_only", False),
        )
        beneath = self.attention.variant
        if self.dropout and not beneath.editable:
            raise Refused(f"{variant} has no weights that could be dropped; use dropout=0.")
        self.variant_name = variant
        # the same modules again, hidden in a tuple so that their parameters are listed once
        self._with_given_mask: tuple[Attention, ...] = ()
        if isinstance(beneath, Chain):
            plain = self.attention
            # a copy that shares its parameters, because each slot sets `any_width` of its heads
            heads_again = copy.copy(plain.heads)
            masked = Attention(heads_again, with_given_mask(beneath), plain.source_width)
            masked.key_maps, masked.query_maps = plain.key_maps, plain.query_maps
            self._with_given_mask = (masked,)
        heads = self.attention.heads
        # the weights of PyTorch's module have queries, keys and values of one width
        if type(heads) is MultiHeads and heads.dims.key_width == heads.dims.value_width:
            self._register_state_dict_hook(pack)
            self.register_load_state_dict_pre_hook(unpack)

    def forward(
        self,
        query: Float[Tensor, "..."],
        key: Float[Tensor, "..."],
        value: Float[Tensor, "..."],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "..."], Tensor | None]:
        """Attend; arguments are those of `nn.MultiheadAttention.forward`.

        A query that may see no key gets zeros, where PyTorch gives NaN.

        Raises:
            Refused: Query, key and value are not the same sequence, though the module is
                self-attention; or the variant cannot follow the mask.
            InvalidConfig: A mask has another shape.
        """
        if not self.cross and (key is not query or value is not query):
            raise Refused(
                "this module is self-attention: query, key and value must be one tensor; build it "
                "with cross=True to attend to another sequence."
            )
        batched = query.dim() == 3
        x, source, values = (self._rows_first(one, batched) for one in (query, key, value))
        if not batched and key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        (rows, queries), keys = x.shape[:2], source.shape[1]
        given = self._given(attn_mask, is_causal, (rows, queries, keys), x.dtype)
        real = None
        if key_padding_mask is not None:
            padding = read_padding_mask(key_padding_mask, (rows, keys), x.dtype)
            if self._is_plain_padding(padding):
                real = padding.allowed[:, 0, 0]
            else:
                given = padding.join(given)
        apart = None if value is key else values
        output, weights = self._answer(x, source, apart, real, given, need_weights)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output[0], None if weights is None else weights[0]
        return output if self.batch_first else output.transpose(0, 1), weights

    def train(self, mode: bool = True) -> "MultiheadAttention":
        """Train or evaluate, with and without a mask that comes with the call."""
        super().train(mode)
        for masked in self._with_given_mask:
            masked.training = mode
        return self

    def _rows_first(self, x: Tensor, batched: bool) -> Tensor:
        if not batched:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _given(
        self, mask: Tensor | None, is_causal: bool, shape: tuple[int, int, int], dtype: torch.dtype
    ) -> GivenMasks | None:
        """What `attn_mask` says beyond what the module does by itself."""
        if mask is None:
            if is_causal and not self.causal:
                raise Refused(
                    "is_causal describes attn_mask, and there is none; pass the mask, or build the "
                    "module with causal=True."
                )
            return None
        given = read_attention_mask(mask, self.attention.heads.dims.heads, shape, dtype)
        if self.causal and not torch.compiler.is_compiling():
            future = torch.ones(shape[1:], dtype=torch.bool, device=mask.device).triu(1)
            if bool((given.allowed & future).any()):
                raise Refused(
                    "attn_mask shows the future, which a module built with causal=True never sees."
                )
            if bool((given.allowed == ~future).all()) and not bool(given.added.any()):
                return None
        elif self.causal and is_causal:
            return None
        self._expect_chain("attn_mask", "Build it with causal=True for the causal mask.")
        return given

    def _is_plain_padding(self, padding: GivenMasks) -> bool:
        """Whether padding is hidden on the right and nothing else is said, as every variant can.

        Compiled code cannot look into a mask to choose a way. There a chain reads it whole, and
        what cannot read it stops where the mask says more.
        """
        if torch.compiler.is_compiling():
            if self._with_given_mask:
                return False
            expect_all(
                padding.added == 0,
                "key_padding_mask adds to energies, which this variant does not have; pass a mask "
                "of truth values, or -inf for padding.",
            )
            return True
        allowed = padding.allowed
        plain = not bool((allowed[..., 1:] & ~allowed[..., :-1]).any() or padding.added.any())
        if not plain:
            self._expect_chain("key_padding_mask", "Move the padding to the right.")
        return plain

    def _expect_chain(self, name: str, instead: str) -> None:
        if not self._with_given_mask:
            raise Refused(
                f"{self.variant_name} has no energies of single keys, which this {name} would "
                f"change. {instead}"
            )

    def _answer(
        self,
        x: Float[Tensor, "B L D"],
        source: Float[Tensor, "B S Dk"],
        values: Float[Tensor, "B S Dk"] | None,
        real: Tensor | None,
        given: GivenMasks | None,
        need_weights: bool,
    ) -> tuple[Float[Tensor, "B L Dv"], Tensor | None]:
        """Attend in the layout of this project."""
        if x.shape[1] == 0:
            return x.new_zeros(*x.shape[:2], self.attention.output_width), None
        attention = self.attention
        call: AttendOptions = {"want_weights": need_weights}
        if given is not None:
            (attention,) = self._with_given_mask
            call["extras"] = given.extras(*x.shape[:2])
        if self.training and self.dropout:
            call["edit"] = partial(_drop, self.dropout)
        if self.causal:
            state = attention.start(None, x)
            output, found = attention.attend(x, None, state, own=(x, real, None), **call)
        else:
            memory = attention.prepare(source, real, values=values)
            output, found = attention.attend(x, memory, attention.start(memory, x), **call)
        return output, found.weights


def _expect_known(options: MultiheadOptions) -> None:
    """Refuse other names, which `**options` would take without a word, and what is no probability.

    Raises:
        UnknownName: There is no such option.
        InvalidConfig: `dropout` is no probability.
    """
    for name in options:
        if name not in MultiheadOptions.__annotations__:
            raise UnknownName.among("option", name, MultiheadOptions.__annotations__)
    dropout = options.get("dropout", 0.0)
    if not 0 <= dropout <= 1:
        raise InvalidConfig(f"dropout is a probability, from 0 to 1, got {dropout!r}.")


def _drop(probability: float, weights: Tensor, _: Call) -> Tensor:
    """Drop weights at random."""
    return functional.dropout(weights, probability)


def as_multihead(
    variant: str, embed_dim: int, num_heads: int, **options: Unpack[MultiheadOptions]
) -> MultiheadAttention:
    """Build a variant that replaces `nn.MultiheadAttention`.

    Args:
        variant: A variant as on the command line.
        embed_dim: Width of queries and output, and of keys and values unless `kdim` says another.
        num_heads: Number of heads.
        options: `dropout`, `bias`, `batch_first`, `kdim` and `vdim` as there; `causal` and `cross`
            say where keys come from, which is the queries' own sequence unless `cross` is True;
            `attention_only` leaves out what a variant has besides its attention.

    Raises:
        UnknownName: No such variant or option.
        InvalidConfig: `dropout` is no probability.
        Refused: The variant cannot stand there, or is more than attention, and `attention_only` was
            not given.
    """
    return MultiheadAttention(variant, embed_dim, num_heads, **options)
