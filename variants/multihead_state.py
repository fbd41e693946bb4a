"""The state of plain multi-head projections under the names of `nn.MultiheadAttention`."""

from typing import Any

import torch
from torch import nn

PACKED = ("to_query", "to_key", "to_value")
"""Maps whose parameters `nn.MultiheadAttention` keeps in one, in this order."""
APART = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
"""How it names their weights where keys have another width than queries."""
HEADS = "attention.heads."


def pack(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """Name parameters of plain heads as `nn.MultiheadAttention` does.

    The packed map is a copy, because the module keeps three. What is written into it reaches the
    module by `load_state_dict` alone. A state in which a map is more than a weight and a bias, as
    under `weight_norm`, is left as it is.
    """
    heads = f"{prefix}{HEADS}"
    if not _are_plain(state, heads):
        return
    for kind in ("weight", "bias"):
        parts = [state.pop(f"{heads}{name}.{kind}", None) for name in PACKED]
        found = [part for part in parts if part is not None]
        if found and kind == "weight" and len({part.shape[1] for part in found}) > 1:
            state |= {f"{prefix}{name}": part for name, part in zip(APART, found, strict=True)}
        elif found:
            state[f"{prefix}in_proj_{kind}"] = torch.cat(found)
        out = state.pop(f"{heads}to_output.{kind}", None)
        if out is not None:
            state[f"{prefix}out_proj.{kind}"] = out


def _are_plain(state: dict[str, Any], heads: str) -> bool:
    """Whether every map has a weight, and all of them or none have a bias."""
    maps = (*PACKED, "to_output")
    weights, biases = (
        [f"{heads}{name}.{kind}" in state for name in maps] for kind in ("weight", "bias")
    )
    return all(weights) and all(biases) == any(biases)


def unpack(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Read what `pack` or `nn.MultiheadAttention` wrote."""
    heads = f"{prefix}{HEADS}"
    for kind in ("weight", "bias"):
        packed = state.pop(f"{prefix}in_proj_{kind}", None)
        if packed is not None:
            for name, part in zip(PACKED, packed.chunk(3), strict=True):
                state[f"{heads}{name}.{kind}"] = part
        out = state.pop(f"{prefix}out_proj.{kind}", None)
        if out is not None:
            state[f"{heads}to_output.{kind}"] = out
    for theirs, name in zip(APART, PACKED, strict=True):
        if f"{prefix}{theirs}" in state:
            state[f"{heads}{name}.weight"] = state.pop(f"{prefix}{theirs}")
