"""Softmax: weights proportional to the exponential of the energy.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, equation 6 (section 3.1). Masking by minus a
million is that of Murphy, "Probabilistic machine learning: an introduction", 2022,
https://probml.github.io/pml-book/book1.html (masked attention).

Deviations: a row without any allowed key gives zeros, not NaN. Only `mask_mode=neg_inf` is
certified; the other ways to hide a key are there for comparison; the option says where each fails.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, register
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax

MaskMode = Literal["neg_inf", "neg_1e6_fill", "neg_1e6_add", "multiplicative_renorm"]
HIDDEN = -1e6
"""Energy of a hidden key in the two modes named after it."""


@dataclass(frozen=True, kw_only=True)
class SoftmaxConfig(Config):
    """Options of softmax."""

    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless); near 0 the best key takes all."""
    # without a search range: a study must not choose a mask that leaks
    mask_mode: MaskMode = "neg_inf"
    """How keys are hidden. `neg_1e6_fill` writes -1e6 over their energies: a row without keys
    reads all of them alike, and so does one whose real energies lie near -1e6. `neg_1e6_add` adds
    it: a row without keys is the softmax of what should be hidden, half precision loses the
    energies or gives NaN. `multiplicative_renorm` hides after the softmax: a hidden key far above
    the others leaves them nothing. None but `neg_inf` is certified."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(f"softmax: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer",
    "softmax",
    config=SoftmaxConfig,
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="equation 6"
    ),
)
class SoftmaxNormalizer(Normalizer):
    """exp(e / t) / sum exp(e / t) over the allowed keys."""

    gives = frozenset({"softmax", "simplex"})

    def __init__(self, config: SoftmaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.temperature = config.temperature
        self.mask_mode = config.mask_mode
        if config.mask_mode == "neg_inf":
            self.softmax_temperature = config.temperature
            self.visible_alone = True

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row."""
        if self.temperature != 1:
            energy = energy / self.temperature
        if allowed is None or self.mask_mode == "neg_inf":
            return Normalized(masked_softmax(energy, allowed))
        if self.mask_mode == "multiplicative_renorm":
            return Normalized(_renormalized(energy, allowed))
        if self.mask_mode == "neg_1e6_fill":
            return Normalized(torch.softmax(torch.where(allowed, energy, HIDDEN), -1))
        return Normalized(torch.softmax(energy + HIDDEN * (~allowed).to(energy.dtype), -1))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Normalize one row by loops."""
        energy = torch.stack([e / self.temperature for e in energy])
        if self.mask_mode == "neg_inf":
            return oracle_softmax(energy, allowed)
        everything = [True] * len(allowed)
        if self.mask_mode == "multiplicative_renorm":
            weights = oracle_softmax(energy, everything)
            kept = [w if open_ else 0 * w for w, open_ in zip(weights, allowed, strict=True)]
            total = sum(kept, torch.zeros_like(kept[0]))
            return torch.stack([w / total if float(total.detach()) else 0 * w for w in kept])
        add = self.mask_mode == "neg_1e6_add"
        hidden = [
            e if open_ else (e + HIDDEN if add else 0 * e + HIDDEN)
            for e, open_ in zip(energy, allowed, strict=True)
        ]
        return oracle_softmax(torch.stack(hidden), everything)


def _renormalized(energy: Energy, allowed: Allowed) -> Weights:
    """Softmax over every key, hidden ones too, then over the sum of what is allowed."""
    weights = torch.softmax(energy, -1) * allowed.to(energy.dtype)
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(energy.dtype).tiny)
