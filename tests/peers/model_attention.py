"""Attention modules of transformers with random weights, and ours with the same."""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

import variants
from tests.peers.agreement import copy_weights, draw_parameters, drawn
from variants.attention import Attention

WIDTH, HEADS, LENGTH = 24, 4, 9
HEAD_WIDTH = WIDTH // HEADS
FLOAT = torch.float32
"""Their softmax is in float32 whatever it gets."""
PAIRS = {"to_query": "q_proj", "to_key": "k_proj", "to_value": "v_proj", "to_output": "o_proj"}

Pairs = dict[str, tuple[Tensor, Tensor]]


def made(models: ModuleType, name: str, *, kv_heads: int = HEADS, **options: Any) -> nn.Module:
    """The eager attention of a model, `LlamaAttention` of `name="Llama"`, its weights drawn."""
    config = getattr(models, f"{name}Config")(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=kv_heads,
        head_dim=HEAD_WIDTH,
        attn_implementation="eager",
        attention_dropout=0.0,
        **options,
    )
    attention = getattr(models, f"{name}Attention")(config, layer_idx=0).eval()
    draw_parameters(attention)
    return attention


def with_weights_of(theirs: nn.Module, selector: str, **build: Any) -> tuple[Attention, Pairs]:
    """Our attention with the four maps of theirs, and these maps as pairs."""
    mine = variants.build(selector, dim=WIDTH, regime="causal", **build).eval()
    draw_parameters(mine, seed=50)
    pairs = {}
    for one, two in PAIRS.items():
        layer, other = getattr(mine.heads, one), getattr(theirs, two)
        pairs[one] = layer.weight, other.weight
        if other.bias is not None:
            pairs[f"{one} bias"] = layer.bias, other.bias
        elif layer.bias is not None:
            nn.init.zeros_(layer.bias)
    copy_weights(dict(pairs.values()))
    return mine, pairs


def states(length: int = LENGTH, seed: int = 0) -> Tensor:
    """A batch of two sequences."""
    return drawn(2, length, WIDTH, seed=seed, dtype=FLOAT)


def causal_mask(length: int = LENGTH) -> Tensor:
    """Zero where a key may be read, minus infinity where it lies in the future."""
    return torch.full((length, length), float("-inf")).triu(1)[None, None]


def no_turn(length: int = LENGTH, width: int = HEAD_WIDTH) -> tuple[Tensor, Tensor]:
    """Cosines and sines of angles of zero."""
    return torch.ones(1, length, width), torch.zeros(1, length, width)


def turns(
    models: ModuleType, name: str, config: Any, length: int = LENGTH
) -> tuple[Tensor, Tensor]:
    """Cosines and sines that the model hands to its attention."""
    rotary = getattr(models, f"{name}RotaryEmbedding")(config)
    return rotary(torch.zeros(1, 1), torch.arange(length)[None])
