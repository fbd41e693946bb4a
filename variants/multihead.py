"""A variant that replaces `torch.nn.MultiheadAttention`: it is called alike and answers alike.

A variant with plain multi-head projections has the same state, too: weights of
`nn.MultiheadAttention` load into it and the other way round.
"""

import copy
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import AttendOptions, Call
from bench.api.chain import Chain
from bench.api.errors import BenchError, InvalidConfig, Refused, UnknownName
from variants.attention import Attention
from variants.checked_tensors import expect_all, expect_tensor
from variants.heads.multi import MultiHeads
from variants.multihead_masks import (
    GivenMasks,
    read_attention_mask,
    read_padding_mask,
    with_given_mask,
)
from variants.multihead_padding import Asked, Moved, stands_right
from variants.multihead_state import pack, unpack
from variants.own_model import build


class MultiheadOptions(TypedDict, total=False):
    """Options of `as_multihead`; those that `nn.MultiheadAttention` has mean the same."""

    dropout: float
    """Probability with which a weight is dropped in training; 0 if not given."""
    bias: bool
    """Whether plain heads have biases; True if not given. What the variant writes, as in
    `mha[bias=false]`, stays."""
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
    """A variant that is called like `nn.MultiheadAttention`.

    Where its heads are plain, `state_dict()` has the names of PyTorch's module. Maps of queries,
    keys and values stand there as one copy: what is written into it does not reach the module. So
    change the parameters of the module, as `parameters()` lists them, or hand the changed state to
    `load_state_dict`. If a map is no plain linear map any more (one with `weight_norm`, or one that
    was replaced), the state has the names of this module's own parameters.
    """

    progress: float = 1.0
    """Share of training that is done, for options that go by it, such as `warm_up` or a temperature
    that falls. A training loop sets it; 1 is as after training."""
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
        self.attention = _built(variant, embed_dim, num_heads, options)
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
        if heads.output_width != embed_dim:
            raise Refused(
                f"{variant} returns {heads.output_width} numbers for each query, because its heads "
                f"map nothing back, and embed_dim is {embed_dim}; give it heads that map back, or "
                "use variants.build."
            )
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

        A query that may see no key gets zeros, where PyTorch gives NaN. Padding may stand anywhere:
        places, distances and lengths count real vectors alone. With `causal=True` padding before a
        real vector gets zeros. To hide a key that keeps its place, use `attn_mask`.

        Among the numbers of a mask, -inf alone hides a key. Others, however low, are added to its
        energy, and a variant without a softmax may still count or cap what they leave (`softpick`,
        `sigmoid_attention`, `ssmax`, `logit_softcap`).

        Raises:
            Refused: Query, key and value are not the same sequence, though the module is
                self-attention; or the variant cannot follow the mask.
            InvalidConfig: What is given is no tensor, or has another shape.
        """
        _expect_tensors(query, key, value, key_padding_mask, attn_mask)
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
        apart = None if value is key else values
        asked, moved = Asked(x, source, apart, given=given), None
        if key_padding_mask is not None:
            asked, moved = self._padded(asked, key_padding_mask)
        output, weights = self._answer(asked, need_weights)
        if moved is not None:
            output, weights = moved.back(output, weights)
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
            if bool((given.allowed == ~future).all()) and not _adds(mask, given):
                return None
        elif self.causal and is_causal and not mask.requires_grad:
            return None
        self._expect_chain("attn_mask", "Build it with causal=True for the causal mask.")
        return given

    def _padded(self, asked: Asked, mask: Tensor) -> tuple[Asked, Moved | None]:
        """The call with its padding on the right, and where its vectors went, if anywhere."""
        rows, keys = asked.source.shape[:2]
        padding = read_padding_mask(mask, (rows, keys), asked.x.dtype)
        real = padding.allowed[:, 0, 0]
        asked = asked._replace(real=real, given=self._with_numbers(mask, padding, asked.given))
        # compiled code cannot look into a mask to choose a way
        if not torch.compiler.is_compiling() and stands_right(real):
            return asked, None
        moved = Moved.of(real, own=not self.cross, causal=self.causal)
        return moved.there(asked), moved

    def _with_numbers(
        self, mask: Tensor, padding: GivenMasks, given: GivenMasks | None
    ) -> GivenMasks | None:
        """Masks of the call together with the numbers of `key_padding_mask`, if it adds any."""
        if mask.dtype == torch.bool:
            return given
        if not torch.compiler.is_compiling():
            if not _adds(mask, padding):
                return given
        elif not self._with_given_mask and not mask.requires_grad:
            expect_all(
                padding.added == 0,
                "key_padding_mask adds to energies, which this variant does not have; pass a mask "
                "of truth values, or -inf for padding.",
            )
            return given
        self._expect_chain("key_padding_mask", "Pass truth values, or -inf for padding.")
        return padding.join(given)

    def _expect_chain(self, name: str, instead: str) -> None:
        if not self._with_given_mask:
            raise Refused(
                f"{self.variant_name} has no energies of single keys, which this {name} would "
                f"change. {instead}"
            )

    def _answer(
        self, asked: Asked, need_weights: bool
    ) -> tuple[Float[Tensor, "B L Dv"], Tensor | None]:
        """Attend in the layout of this project."""
        x, real = asked.x, asked.real
        if x.shape[1] == 0:
            return x.new_zeros(*x.shape[:2], self.attention.output_width), None
        attention = self.attention
        call: AttendOptions = {"want_weights": need_weights, "progress": self.progress}
        if asked.given is not None:
            (attention,) = self._with_given_mask
            call["extras"] = asked.given.extras(*x.shape[:2])
        if self.training and self.dropout:
            call["edit"] = partial(_drop, self.dropout)
        if self.causal:
            state = attention.start(None, x)
            output, found = attention.attend(x, None, state, own=(x, real, None), **call)
        else:
            memory = attention.prepare(asked.source, real, values=asked.values)
            output, found = attention.attend(x, memory, attention.start(memory, x), **call)
        return output, found.weights


def _expect_tensors(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None
) -> None:
    """Refuse what is no tensor, and values that are not one vector for each key.

    Raises:
        InvalidConfig: One is no tensor, or the value has another shape than the key.
    """
    for name, given in (("query", query), ("key", key), ("value", value)):
        expect_tensor(name, given)
    for name, hides in (("key_padding_mask", padding), ("attn_mask", mask)):
        if hides is not None:
            expect_tensor(name, hides)
    if value.shape != key.shape:
        raise InvalidConfig(
            f"value must have the shape of key, {tuple(key.shape)}, got {tuple(value.shape)}."
        )


def _adds(mask: Tensor, said: GivenMasks) -> bool:
    """Whether a mask adds to energies, or learns to from zeros on."""
    return mask.requires_grad or bool(said.added.any())


def _expect_known(options: MultiheadOptions) -> None:
    """Refuse other names, which `**options` would take without a word, and what is no probability.

    Raises:
        UnknownName: There is no such option.
        InvalidConfig: `dropout` is no probability.
    """
    for name in options:
        if name not in MultiheadOptions.__annotations__:
            raise UnknownName.among("option", name, MultiheadOptions.__annotations__)
    dropout: object = options.get("dropout", 0.0)
    if not isinstance(dropout, Real) or not 0 <= float(dropout) <= 1:
        raise InvalidConfig(f"dropout is a probability, from 0 to 1, got {dropout!r}.")


def _built(variant: str, embed_dim: int, num_heads: int, options: MultiheadOptions) -> Attention:
    """Build the attention; where it is refused, say which option helps, if one does.

    Raises:
        Refused: The options do not go together, or the variant cannot stand there.
    """
    source_dim, value_dim = options.get("kdim") or embed_dim, options.get("vdim") or embed_dim
    cross = options.get("cross", False)
    if value_dim != source_dim:
        raise Refused(
            f"keys and values come from states of one width, got kdim={source_dim} and "
            f"vdim={value_dim}; give both the same, and cross=True if it is not embed_dim."
        )
    if source_dim != embed_dim and not cross:
        raise Refused("keys of another width are another sequence; build it with cross=True.")
    asked = "causal" if options.get("causal", False) else "cross" if cross else "self"
    made = partial(
        build,
        variant,
        dim=embed_dim,
        heads=num_heads,
        source_dim=source_dim,
        projection_bias=options.get("bias", True),
        attention_only=options.get("attention_only", False),
    )
    try:
        return made(regime=asked)
    except Refused as reason:
        for regime in ("self", "causal", "cross"):
            if regime != asked and _stands(partial(made, regime=regime)):
                remedy = f"without {asked}" if regime == "self" else f"with {regime}=True"
                raise Refused(f"{str(reason).rstrip('.')}; build it {remedy}.") from None
        raise


def _stands(made: Callable[[], Attention]) -> bool:
    """Whether something is built and not refused."""
    try:
        made()
    except BenchError:
        return False
    return True


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
