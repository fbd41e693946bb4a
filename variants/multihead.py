"""A variant that replaces `torch.nn.MultiheadAttention`: it is called alike and answers alike.

A variant with plain multi-head projections has the same state, too: weights of
`nn.MultiheadAttention` load into it and the other way round.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.errors import InvalidConfig, Refused
from variants.own_model import build

PACKED = ("to_query", "to_key", "to_value")
"""Maps whose parameters `nn.MultiheadAttention` keeps in one, in this order."""


class MultiheadAttention(nn.Module):
    """A self-attention variant that is called like `nn.MultiheadAttention`."""

    in_proj_bias = None
    """Tells `nn.TransformerEncoderLayer` to call this module instead of its own fused code."""
    in_proj_weight = None
    _qkv_same_embed_dim = True

    def __init__(
        self,
        variant: str,
        embed_dim: int,
        num_heads: int,
        *,
        bias: bool = True,
        batch_first: bool = False,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.causal = causal
        self.attention = build(
            variant,
            dim=embed_dim,
            heads=num_heads,
            regime="causal" if causal else "self",
            projection_bias=bias,
        )
        self._register_state_dict_hook(_pack)
        self.register_load_state_dict_pre_hook(_unpack)

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

        `key_padding_mask` is True (or -inf) where a key is padding, as there.

        Raises:
            Refused: Query, key and value are not the same sequence, or the mask is another than
                the causal one that this module was built with.
        """
        if key is not query or value is not query:
            raise Refused(
                "this module is self-attention: query, key and value must be one tensor. Use "
                'variants.build(..., regime="cross") to attend to another sequence.'
            )
        x = query
        batched = x.dim() == 3
        if not batched:
            x = x.unsqueeze(0)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            x = x.transpose(0, 1)
        self._check(attn_mask, is_causal, x.shape[1])
        real = None if key_padding_mask is None else _real(key_padding_mask)
        if x.shape[1] == 0:
            output, weights = self.attention(x), None
        else:
            output, found = self.attention.answer_all(x, x, real, want_weights=need_weights)
            weights = found.weights
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output[0], None if weights is None else weights[0]
        return output if self.batch_first else output.transpose(0, 1), weights

    def _check(self, mask: Tensor | None, is_causal: bool, length: int) -> None:
        """A causal module takes the causal mask or none, any other takes none."""
        if mask is None and not is_causal:
            return
        if not self.causal:
            raise Refused(
                "this module attends to every key; pass no attn_mask, or build it with causal=True."
            )
        if mask is not None and not torch.compiler.is_compiling():
            hidden = mask if mask.dtype == torch.bool else mask == float("-inf")
            future = torch.ones(length, length, dtype=torch.bool, device=mask.device).triu(1)
            same = hidden.shape[-2:] == future.shape and bool((hidden == future).all())
            if not same:
                raise Refused("attn_mask is not the causal mask, and this module has no other.")


def _real(padding: Tensor) -> Tensor:
    """True where a key is real."""
    if padding.dtype == torch.bool:
        return ~padding
    hidden = padding == float("-inf")
    if not torch.compiler.is_compiling() and not bool((hidden | (padding == 0)).all()):
        raise InvalidConfig("key_padding_mask must be True or -inf at padding, False or 0 else.")
    return ~hidden


def _pack(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """Name parameters of plain heads as `nn.MultiheadAttention` does."""
    heads = f"{prefix}attention.heads."
    for kind in ("weight", "bias"):
        parts = [state.get(f"{heads}{name}.{kind}") for name in PACKED]
        out = state.get(f"{heads}to_output.{kind}")
        if out is None or any(part is None for part in parts):
            continue
        for name in (*PACKED, "to_output"):
            del state[f"{heads}{name}.{kind}"]
        state[f"{prefix}in_proj_{kind}"] = torch.cat([part for part in parts if part is not None])
        state[f"{prefix}out_proj.{kind}"] = out


def _unpack(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Read what `_pack` or `nn.MultiheadAttention` wrote."""
    heads = f"{prefix}attention.heads."
    for kind in ("weight", "bias"):
        packed = state.pop(f"{prefix}in_proj_{kind}", None)
        if packed is not None:
            for name, part in zip(PACKED, packed.chunk(3), strict=True):
                state[f"{heads}{name}.{kind}"] = part
        out = state.pop(f"{prefix}out_proj.{kind}", None)
        if out is not None:
            state[f"{heads}to_output.{kind}"] = out


def as_multihead(
    variant: str,
    embed_dim: int,
    num_heads: int,
    *,
    bias: bool = True,
    batch_first: bool = False,
    causal: bool = False,
) -> MultiheadAttention:
    """Build a self-attention variant that replaces `nn.MultiheadAttention`.

    Args:
        variant: A variant as on the command line.
        embed_dim: Width of queries, keys, values and output.
        num_heads: Number of heads.
        bias: Whether projections have biases, where the variant has plain heads.
        batch_first: Whether tensors are batch by length by width.
        causal: Whether a query sees keys up to its own place alone.

    Raises:
        UnknownName: No such variant.
        Refused: The variant has no self-attention, or is more than attention.
    """
    return MultiheadAttention(
        variant, embed_dim, num_heads, bias=bias, batch_first=batch_first, causal=causal
    )
