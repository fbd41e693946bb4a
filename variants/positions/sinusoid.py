"""Sinusoidal positions: sines and cosines of the place, added to the input of the stack.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5.

Deviations: `layout=halves` puts all sines before all cosines, at the paper's frequencies
(tensor2tensor spaces them otherwise); an odd width ends in a sine. Scaling the embeddings and
dropout belong to the backbone: embeddings much larger than one drown the sinusoids.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Dims
from bench.api.component import Position
from bench.api.config import Choices, Config
from bench.api.facts import Fact
from bench.api.registry import Citation, Home, register

BASE = 10000.0


@dataclass(frozen=True, kw_only=True)
class SinusoidConfig(Config):
    """Options of sinusoidal positions."""

    layout: Annotated[Literal["interleaved", "halves"], Choices(("interleaved", "halves"))] = (
        "interleaved"
    )
    """Sines and cosines in turn (the paper), or all sines first."""


@register(
    "position",
    "sinusoid",
    title="Sinusoidal positions",
    config=SinusoidConfig,
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.5"
    ),
    home=Home(task="offset"),
)
class SinusoidPosition(Position):
    """sin(p w_i) and cos(p w_i), w_i = 10000^(-2i/D); no parameters; time O(L D)."""

    cannot: ClassVar[Mapping[Fact, str]] = {
        "cross": "it acts on the input of self-attention layers, which cross attention has not",
        "pool": "it acts on the input of self-attention layers, which pooling has not",
    }

    def __init__(self, config: SinusoidConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.layout = config.layout

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add the sinusoids of the places from `offset` on."""
        length, width = x.shape[1:]
        # angles in half precision would be wrong from the first few hundred places on
        dtype = torch.promote_types(x.dtype, torch.float32)
        place = torch.arange(offset, offset + length, dtype=dtype, device=x.device)
        even = torch.arange(0, width, 2, dtype=dtype, device=x.device)
        angle = place[:, None] * torch.exp(even * (-math.log(BASE) / width))
        sine, cosine = angle.sin(), angle.cos()[:, : width // 2]
        table = torch.cat((sine, cosine), 1)
        if self.layout == "interleaved":
            table = torch.empty_like(table)
            table[:, 0::2], table[:, 1::2] = sine, cosine
        return x + table.to(x.dtype)

    def oracle_embed(self, x: Float[Tensor, " D"], place: int) -> Float[Tensor, " D"]:
        """`embed` for one place, unit by unit."""
        width = x.shape[0]
        num_sines = (width + 1) // 2
        found = []
        for unit in range(width):
            if self.layout == "interleaved":
                pair, is_sine = unit // 2, unit % 2 == 0
            else:
                pair, is_sine = unit % num_sines, unit < num_sines
            angle = place / BASE ** (2 * pair / width)
            found.append(x[unit] + (math.sin(angle) if is_sine else math.cos(angle)))
        return torch.stack(found)
