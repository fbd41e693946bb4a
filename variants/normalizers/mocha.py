"""Monotonic chunkwise attention: softmax over a small window that ends where a walk stops.

Chiu & Raffel, 2018, "Monotonic chunkwise attention", https://arxiv.org/abs/1712.05382, sections
2.2 and 2.3 (equations 20 and 21 for training).

Deviations: those of `raffel_monotonic`, whose walk this is. The windows are computed one by one
with a maximum each, not with moving sums of exponentials, which underflow where energies differ.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Weights
from variants.normalizers.chunk_read import ChunkConfig, ChunkNormalizer
from variants.normalizers.masked_softmax import masked_softmax


@dataclass(frozen=True, kw_only=True)
class MochaConfig(ChunkConfig):
    """Options of monotonic chunkwise attention."""

    window: Annotated[int, IntRange(2, 8)] = 2
    """Keys read at a stop, its own included (the paper tries 2 to 8)."""

    def __post_init__(self) -> None:
        """Check the window."""
        super().__post_init__()
        if self.window < 1:
            raise InvalidConfig(f"mocha: window must be at least 1 key, got {self.window}.")


@register(
    "normalizer",
    "mocha",
    config=MochaConfig,
    citation=Citation(
        text="Chiu & Raffel, 2018",
        url="https://arxiv.org/abs/1712.05382",
        where="sections 2.2 and 2.3",
    ),
)
class MochaNormalizer(ChunkNormalizer):
    """beta_s = sum_{k=s}^{s+w-1} alpha_k exp(u_s) / sum_{l=k-w+1}^{k} exp(u_l).

    Time and memory O(L S w) beyond the two scores; streaming touches each key at most w times.
    """

    stream_name = "mocha.energy"

    def __init__(self, config: MochaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.window = config.window
        self.lookback = config.window - 1

    def spread(self, stops: Weights, allowed: Allowed | None, call: Call) -> Weights:
        """A softmax in the window before every key, weighed with the stop there."""
        energy = self.chunk_energy(call)
        length, num_keys = energy.shape[2:]
        back = min(self.window, num_keys) - 1
        if allowed is None:
            allowed = torch.ones(1, 1, 1, num_keys, dtype=torch.bool, device=energy.device)
        allowed = allowed.expand(-1, -1, length, -1)
        # a query and a key in one axis, the positions of the window before it in the last
        windows = functional.pad(energy, (back, 0)).unfold(-1, back + 1, 1).flatten(2, 3)
        inside = functional.pad(allowed, (back, 0)).unfold(-1, back + 1, 1).flatten(2, 3)
        read = masked_softmax(windows, inside).unflatten(2, (length, num_keys))
        read = stops.unsqueeze(-1) * read
        # what the stop at k reads at position j of its window belongs to key k - back + j
        shifted = [
            functional.pad(part[..., back - j :], (0, back - j))
            for j, part in enumerate(read.unbind(-1))
        ]
        return torch.stack(shifted).sum(0)


register_recipe(
    "mocha",
    Recipe(axes={"score": "additive", "normalizer": "mocha[noise=2.0]"}, main="normalizer"),
    module=__name__,
    title="Monotonic chunkwise attention",
    citation=Citation(text="Chiu & Raffel, 2018", url="https://arxiv.org/abs/1712.05382"),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Chiu and Raffel report reading word by word at the quality of soft attention, and no "
        "clear gain of quality over it: 13.9% and 14.2% wrong words on the Wall Street Journal "
        "corpus of speech, and worse summaries of news. Delays are measured on "
        "`incremental_translation` and on speech."
    ),
    deviations=(
        "those of the normalizer `mocha` and of the additive score; the noise before the "
        "sigmoid has standard deviation 2, not 1."
    ),
)
