"""Monotonic infinite lookback: softmax attention over all keys up to the stop of a walk.

Arivazhagan et al., 2019, "Monotonic infinite lookback attention for simultaneous machine
translation", https://arxiv.org/abs/1906.05218, section 3.

Deviations: those of `raffel_monotonic`, whose walk this is. The sum over stops is a scan from the
right whose factors are at most one, not a quotient of cumulative sums, which overflows.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Weights
from variants.normalizers.chunk_read import ChunkConfig, ChunkNormalizer
from variants.normalizers.expected_alignment import scan


@dataclass(frozen=True, kw_only=True)
class MilkConfig(ChunkConfig):
    """Options of monotonic infinite lookback."""


@register(
    "normalizer",
    "milk",
    config=MilkConfig,
    citation=Citation(
        text="Arivazhagan et al., 2019",
        url="https://arxiv.org/abs/1906.05218",
        where="section 3",
    ),
)
class MilkNormalizer(ChunkNormalizer):
    """beta_s = sum_{k>=s} alpha_k exp(u_s) / sum_{l<=k} exp(u_l).

    Time O(L S log S) beyond the two scores; hard decoding reads the whole prefix at every step.
    """

    stream_name = "milk.energy"

    def __init__(self, config: MilkConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.lookback = None

    def spread(self, stops: Weights, allowed: Allowed | None, call: Call) -> Weights:
        """With Z_k the sum up to k: r_s = alpha_s + (Z_s / Z_{s+1}) r_{s+1}, beta = r exp(u) / Z.

        Sums are kept relative to the largest energy so far, so every factor is at most one.
        """
        energy = self.chunk_energy(call)
        if allowed is not None:
            # finite, so that hidden keys at the start do not divide zero by zero; they no longer
            # count once a real key comes
            energy = torch.where(allowed, energy, torch.finfo(energy.dtype).min)
        top = energy.detach().cummax(-1).values
        terms = torch.exp(energy - top)
        shrink = torch.exp(top[..., :-1] - top[..., 1:])
        total = scan(functional.pad(shrink, (1, 0)), terms)
        kept = total[..., :-1] * shrink / total[..., 1:]
        kept = functional.pad(kept, (0, 1))
        reached = scan(kept.flip(-1), stops.flip(-1)).flip(-1)
        weights = reached * terms / total
        return weights if allowed is None else torch.where(allowed, weights, 0.0)


register_recipe(
    "milk",
    Recipe(
        axes={"score": "additive", "normalizer": "milk[end=last,noise=2.0]", "loss": "latency"},
        main="normalizer",
    ),
    module=__name__,
    title="Monotonic infinite lookback",
    citation=Citation(text="Arivazhagan et al., 2019", url="https://arxiv.org/abs/1906.05218"),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Arivazhagan et al. report a better trade of quality for delay than other simultaneous "
        "translation, on corpora of real sentences (WMT), and no gain of quality over soft "
        "attention. Delays are measured on `incremental_translation`."
    ),
    deviations=(
        "those of the normalizer `milk`, of the loss `latency` and of the additive score; the "
        "noise before the sigmoid has standard deviation 2, not 1."
    ),
)
