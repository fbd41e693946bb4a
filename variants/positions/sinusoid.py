"""Sinusoidal positions: sines and cosines of the position, added to the input of the stack.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5.

Deviations: none by default; an odd width ends in a sine. The authors' own code (tensor2tensor)
differs from the paper in layout and spacing, and is `layout=halves,spacing=ends`. Scaling the
embeddings and dropout belong to the backbone: embeddings much larger than one hide the sinusoids.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.precision import wide_format

BASE = 10000.0


@dataclass(frozen=True, kw_only=True)
class SinusoidConfig(Config):
    """Options of sinusoidal positions."""

    layout: Annotated[Literal["interleaved", "halves"], Choices(("interleaved", "halves"))] = (
        "interleaved"
    )
    """Sines and cosines in turn (the paper), or all sines first."""
    spacing: Annotated[Literal["paper", "ends"], Choices(("paper", "ends"))] = "paper"
    """Frequencies of the paper, or D/2 - 1 steps down to exactly 1e-4, as in tensor2tensor, where
    an odd width ends in a zero."""


@register(
    "position",
    "sinusoid",
    title="Sinusoidal positions",
    config=SinusoidConfig,
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.5"
    ),
    default_task=DefaultTask(task="offset"),
)
class SinusoidPosition(Position):
    """sin(p w_i) and cos(p w_i), w_i = 10000^(-2i/D); no parameters; time O(L D).

    With `spacing=ends` w_i = 10000^(-i / (D/2 - 1)), so that the last frequency is exactly 1e-4.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "it acts on the input of self-attention layers, and cross attention has none",
        "pool": "it acts on the input of self-attention layers, and pooling has none",
    }

    def __init__(self, config: SinusoidConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.layout = config.layout
        self.spacing = config.spacing

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add the sinusoids of the positions from `offset` on."""
        length, width = x.shape[1:]
        # angles in half precision would be wrong from the first few hundred positions on
        dtype = wide_format(x.dtype)
        place = torch.arange(offset, offset + length, dtype=dtype, device=x.device)
        angle = place[:, None] * self._frequency(width, dtype, x.device)
        sine, cosine = angle.sin(), angle.cos()[:, : width // 2]
        table = torch.cat((sine, cosine), 1)
        if self.layout == "interleaved":
            table = torch.stack((sine[:, : width // 2], cosine), -1).flatten(1)
            table = torch.cat((table, sine[:, width // 2 :]), 1)
        return x + functional.pad(table, (0, width - table.shape[1])).to(x.dtype)

    def _frequency(
        self, width: int, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, " W"]:
        """One number per sine."""
        if self.spacing == "paper":
            even = torch.arange(0, width, 2, dtype=dtype, device=device)
            return torch.exp(even * (-math.log(BASE) / width))
        pair = torch.arange(width // 2, dtype=dtype, device=device)
        return torch.exp(pair * (-math.log(BASE) / max(1, width // 2 - 1)))

    def oracle_embed(self, x: Float[Tensor, " D"], place: int) -> Float[Tensor, " D"]:
        """`embed` for one position, unit by unit."""
        width = x.shape[0]
        ends = self.spacing == "ends"
        num_sines = width // 2 if ends else (width + 1) // 2
        found = []
        for unit in range(width):
            if ends and unit == 2 * num_sines:
                found.append(x[unit])
                continue
            if self.layout == "interleaved":
                pair, is_sine = unit // 2, unit % 2 == 0
            else:
                pair, is_sine = unit % num_sines, unit < num_sines
            power = pair / max(1, num_sines - 1) if ends else 2 * pair / width
            angle = place / BASE**power
            found.append(x[unit] + (math.sin(angle) if is_sine else math.cos(angle)))
        return torch.stack(found)
