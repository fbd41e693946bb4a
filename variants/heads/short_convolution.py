"""Projections of recurrent layers: short convolutions in front, a norm and a gate behind.

Yang, Kautz & Hatamizadeh, 2025, "Gated delta networks: improving Mamba2 with delta rule",
https://arxiv.org/abs/2412.06464, section 3.4 and figure 1; the convolutions are those of Dao & Gu,
2024, https://arxiv.org/abs/2405.21060, section 7.1.

Deviations: `gate=silu` is the gate of the paper, `sigmoid` that of Kimi Linear (2025,
https://arxiv.org/abs/2510.26692), where two maps with the width of a head between them and a bias
stand in the place of our one map without a bias. Fewer heads of queries and keys than of values
(`key_heads`) are not of the paper, but of Qwen3-Next (2025), where each head of values has gates of
its own; here heads that share a key share its gates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads, last_real, without_padding
from bench.api.registry import Citation, register
from bench.api.shapes import Query
from bench.api.source import Source, Tree, leaf
from variants.heads.projections import (
    Concatenated,
    ProjectedHeads,
    oracle_linear,
    split_heads,
    width_of_head,
)
from variants.precision import at_least_single

EPS = 1e-5
"""Added to the mean square in the norm of the output."""


@dataclass(frozen=True, kw_only=True)
class ShortConvolutionConfig(Config):
    """Options of projections with short convolutions."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads of values, and of what asks; divides the model width."""
    key_heads: Annotated[int, Choices((0, 1, 2))] = 0
    """Number of heads of queries and keys, which divides `heads`; 0 for as many."""
    kernel: Annotated[int, Choices((2, 3, 4))] = 4
    """Tokens that each convolution sees, its own among them."""
    activation: Annotated[Literal["silu", "none"], Choices(("silu", "none"))] = "silu"
    """Behind each convolution."""
    norm: bool = True
    """Whether what a head reads is divided by its root mean square."""
    gate: Annotated[Literal["silu", "sigmoid", "none"], Choices(("silu", "sigmoid", "none"))] = (
        "silu"
    )
    """What is read is multiplied by this function of another map of the state that asks."""
    expand: Annotated[int, Choices((1, 2))] = 1
    """Width of a value in widths of a key."""


@register(
    "head",
    "short_convolution",
    config=ShortConvolutionConfig,
    citation=Citation(
        text="Yang et al., 2025", url="https://arxiv.org/abs/2412.06464", where="section 3.4"
    ),
)
class ShortConvolutionHeads(Concatenated, ProjectedHeads):
    """q, k, v = activation(conv(W x)) for each unit by itself; output = gate * norm(read).

    The last `kernel - 1` projected states that are no padding are kept, in the dtype of the states.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = dict.fromkeys(
        ("cross", "self", "pool"),
        "its convolutions see the states before a state, so it needs a causal place",
    )

    def __init__(
        self,
        config: ShortConvolutionConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("short_convolution", config.heads, query_width)
        if min(config.kernel, config.expand) < 1:
            raise InvalidConfig(
                "short_convolution: kernel and expand must be at least 1, "
                f"got {config.kernel} and {config.expand}."
            )
        heads, keys = config.heads, config.key_heads or config.heads
        if keys < 1 or heads % keys:
            raise InvalidConfig(
                f"short_convolution: key_heads must divide heads={heads}, got {keys}."
            )
        self.config = config
        values = width * config.expand
        dims = Dims(heads, keys, width, width, values, query_width, regime)
        self.dims = dims._replace(value_heads=heads) if keys < heads else dims
        inner = heads * values
        self.output_width = query_width
        self.widths = (keys * width, keys * width, inner)
        self.to_query, self.to_key, self.to_value = (
            nn.Linear(query_width, units, bias=False) for units in self.widths
        )
        self.taps = nn.Parameter(torch.empty(sum(self.widths), config.kernel))
        bound = config.kernel**-0.5
        nn.init.uniform_(self.taps, -bound, bound)
        self.gain = nn.Parameter(torch.ones(values)) if config.norm else None
        self.starts = {"gain": 1.0} if config.norm else {}
        self.to_gate = None if config.gate == "none" else nn.Linear(query_width, inner, bias=False)
        self.gates = config.norm or config.gate != "none"
        self.to_output = nn.Linear(inner, query_width, bias=False)
        for layer in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.xavier_uniform_(layer.weight)

    def start(self, like: QueryShape) -> Tree:
        """Zeros stand before the first state."""
        shape = (like.rows, self.config.kernel - 1, sum(self.widths))
        return {"projected": torch.zeros(shape, dtype=like.dtype, device=like.device)}

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        """Project and split, without a convolution."""
        return self._shared(self.to_query(x))

    def source(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Project and split, without a convolution."""
        key = split_heads(self.to_key(x), self.dims.kv_heads)
        return Source(key, split_heads(self.to_value(x), self.dims.heads), mask, tokens)

    def _shared(self, queries: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        """Queries of each head: neighbors ask with the same one where they share a key."""
        return expand_heads(split_heads(queries, self.dims.kv_heads), self.dims.heads)

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """Project, convolve along the sequence, split into heads."""
        made = torch.cat((self.to_query(x), self.to_key(x), self.to_value(x)), -1)
        wide = torch.cat((leaf(past, "projected"), without_padding(made, mask)), 1)
        mixed = functional.conv1d(wide.mT, self.taps.unsqueeze(1), groups=len(self.taps)).mT
        if self.config.activation == "silu":
            mixed = functional.silu(mixed)
        queries, keys, values = mixed.split(self.widths, -1)
        key, value = split_heads(keys, self.dims.kv_heads), split_heads(values, self.dims.heads)
        kept = last_real(wide, mask, self.config.kernel - 1)
        return self._shared(queries), Source(key, value, mask, tokens), {"projected": kept}

    def gate(
        self, output: Float[Tensor, "B H L Ev"], x: Float[Tensor, "B L D"]
    ) -> Float[Tensor, "B H L Ev"]:
        """Norm, then gate."""
        if self.gain is not None:
            wide = at_least_single(output)  # squares leave the range of float16
            normed = wide * (wide.square().mean(-1, keepdim=True) + EPS).rsqrt()
            output = normed.to(output.dtype) * self.gain
        if self.to_gate is None:
            return output
        opened = split_heads(self.to_gate(x), self.dims.heads)
        if self.config.gate == "sigmoid":
            return output * opened.sigmoid()
        return output * functional.silu(opened)

    def oracle_own(
        self, x: Float[Tensor, "L D"]
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "Hk L E"], Float[Tensor, "H L Ev"]]:
        """Unit by unit: the weighted sum of the last few projections."""
        layers = (self.to_query, self.to_key, self.to_value)
        made = [[n for layer in layers for n in oracle_linear(layer, state)] for state in x]
        rows = []
        for t in range(len(made)):
            row = []
            for unit in range(sum(self.widths)):
                total = x.new_zeros(())
                for tap in range(self.config.kernel):
                    at = t - (self.config.kernel - 1) + tap
                    if at >= 0:
                        total = total + self.taps[unit, tap] * made[at][unit]
                silu = self.config.activation == "silu"
                row.append(total / (1 + torch.exp(-total)) if silu else total)
            rows.append(torch.stack(row))
        queries, keys, values = torch.stack(rows).split(self.widths, -1)
        heads, width = self.dims.heads, self.dims.key_width
        shared = [queries[:, at : at + width] for at in range(0, queries.shape[1], width)]
        query = torch.stack([shared[h * len(shared) // heads] for h in range(heads)])
        key = keys.unflatten(-1, (len(shared), -1)).transpose(0, 1)
        return query, key, values.unflatten(-1, (heads, -1)).transpose(0, 1)

    def oracle_gate(
        self, output: Float[Tensor, "H Ev"], x: Float[Tensor, " D"]
    ) -> Float[Tensor, "H Ev"]:
        """One head after the other."""
        heads, width = output.shape
        opened = [] if self.to_gate is None else oracle_linear(self.to_gate, x)
        found = []
        for head in range(heads):
            size = torch.sqrt(
                sum((n * n for n in output[head]), start=x.new_zeros(())) / width + EPS
            )
            for unit in range(width):
                number = output[head, unit]
                if self.gain is not None:
                    number = number / size * self.gain[unit]
                if opened:
                    gate = opened[head * width + unit]
                    share = 1 / (1 + torch.exp(-gate))
                    number = number * share * (gate if self.config.gate == "silu" else 1)
                found.append(number)
        return torch.stack(found).unflatten(0, (heads, width))
