"""Gated attention: what each head has read is multiplied by a gate of the state that asked.

Qiu et al., 2025, "Gated attention for large language models: non-linearity, sparsity, and
attention-sink-free", https://arxiv.org/abs/2505.06708, section 2.2, at position G1,
behind the weighted sum and before the output map.

Deviations: none; heads are multi-head by default, and share keys with a smaller `kv_heads`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from variants.heads.grouped import GroupedHeads
from variants.heads.projections import oracle_linear, split_heads, width_of_head
from variants.heads.query_key_norm import QueryKeyNormName, query_key_norm


@dataclass(frozen=True, kw_only=True)
class GatedAttentionConfig(Config):
    """Options of gated attention."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of query heads; divides the model width."""
    kv_heads: Annotated[int, Choices((0, 1))] = 0
    """Number of heads of keys and values, which divides the heads; 0 for as many as heads."""
    gate: Annotated[Literal["elementwise", "headwise"], Choices(("elementwise", "headwise"))] = (
        "elementwise"
    )
    """Whether every unit of a head has a gate, or every head."""
    bias: bool = False
    """Whether the projections have biases; the gate has none."""
    qk_norm: QueryKeyNormName = "none"
    """How queries and keys are normalized, head by head."""
    length: Annotated[int, IntRange(8, 4096, log=True)] = 64
    """Length of training sequences (tokens), from which the scale of `qk_norm=l2` starts."""


@register(
    "head",
    "gated_attention",
    config=GatedAttentionConfig,
    title="Gated attention",
    citation=Citation(
        text="Qiu et al., 2025", url="https://arxiv.org/abs/2505.06708", where="section 2.2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Qiu et al. report better language models and less weight on the first token, with 1.7 and "
        "15 billion parameters and 3.5 trillion tokens of training. Here a network has one or two "
        "layers and reads at most 128 symbols."
    ),
)
class GatedAttentionHeads(GroupedHeads):
    """output = W_o (read * sigmoid(W_g x)), with x the state that made the query.

    Cost: one more map, of the model width squared, or of a number a head.
    """

    gates = True

    def __init__(
        self,
        config: GatedAttentionConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads, kv_heads = config.heads, config.kv_heads or config.heads
        width = width_of_head("gated_attention", heads, query_width)
        if kv_heads < 1 or heads % kv_heads:
            raise InvalidConfig(
                f"gated_attention: kv_heads must divide heads={heads}, got {kv_heads}."
            )
        dims = Dims(heads, kv_heads, width, width, width, query_width, regime)
        norm = query_key_norm(config.qk_norm, width, config.length)
        self.make(dims, source_width, bias=config.bias, norm=norm)
        gates = width if config.gate == "elementwise" else 1
        self.to_gate = nn.Linear(query_width, heads * gates, bias=False)

    def gate(
        self, output: Float[Tensor, "B H L E"], x: Float[Tensor, "B L D"]
    ) -> Float[Tensor, "B H L E"]:
        """Multiply by the gates of the states that asked."""
        return output * split_heads(self.to_gate(x), self.dims.heads).sigmoid()

    def oracle_gate(
        self, output: Float[Tensor, "H E"], x: Float[Tensor, " D"]
    ) -> Float[Tensor, "H E"]:
        """One unit after the other."""
        opened = [1 / (1 + torch.exp(-number)) for number in oracle_linear(self.to_gate, x)]
        heads, width = output.shape
        gates = len(opened) // heads
        found = [
            torch.stack([output[h, e] * opened[h * gates + e % gates] for e in range(width)])
            for h in range(heads)
        ]
        return torch.stack(found)
