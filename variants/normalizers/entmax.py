"""Alpha-entmax: from softmax (alpha near 1) to sparsemax (alpha 2), given or learned by each head.

Peters, Niculae & Martins, 2019, "Sparse sequence-to-sequence models",
https://arxiv.org/abs/1905.05702, section 3 and algorithm 1; learned alpha is Correia, Niculae &
Martins, 2019, "Adaptively sparse transformers", https://arxiv.org/abs/1909.00015, section 3.

Deviations: the temperature is in neither paper. A learned alpha begins at the option's value, where
the paper draws it, and is at least 1.0001, where weights are those of softmax. On a CPU the
threshold is found by Newton's method, in fewer rounds than by algorithm 1; elsewhere, and for alpha
above 2, by the authors' library `entmax`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log, log2
from typing import Annotated

import entmax
import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Tree
from variants.normalizers.newton_weights import newton_weights
from variants.normalizers.sparse_weights import Alpha, sparse_weights
from variants.precision import at_least_single

LEAST = 1e-4
"""Of alpha less 1. Weights are those of softmax there. Energies times less than that, beside 1,
keep few digits in float32, and alpha itself is rounded to 1."""


@dataclass(frozen=True, kw_only=True)
class EntmaxConfig(Config):
    """Options of alpha-entmax."""

    alpha: Annotated[float, FloatRange(1.1, 2.0)] = 1.5
    """Sparsity (dimensionless), at least 1.0001; 1 would be softmax, and 2 is sparsemax."""
    adaptive: Annotated[bool, Choices((False, True))] = False
    """Whether each head learns its own alpha between 1 and 2, from the value given."""
    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless); lower is sparser."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.alpha < 1 + LEAST:
            raise InvalidConfig(
                f"entmax: alpha must be at least {1 + LEAST}, got {self.alpha}; alpha 1 is softmax."
            )
        if self.adaptive and not LEAST < self.alpha - 1 < 1:
            raise InvalidConfig(
                f"entmax: a learned alpha lies between {1 + LEAST} and 2, and cannot begin at "
                f"{self.alpha}."
            )
        if self.temperature <= 0:
            raise InvalidConfig(f"entmax: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer",
    "entmax",
    config=EntmaxConfig,
    title="From softmax to sparsemax by alpha, given or learned",
    citation=Citation(
        text="Peters et al., 2019",
        url="https://arxiv.org/abs/1905.05702",
        where="section 3, algorithm 1",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Peters et al. report better inflection of words and better translations (0.2 to 0.6 "
        "million pairs of sentences) than with softmax, where attention and output are sparse. "
        "Here the output is a softmax. Recall is solved: the baseline recalls nearly every pair, "
        "which leaves no room above it."
    ),
    cost=1.4,
)
class EntmaxNormalizer(Normalizer):
    """max((alpha - 1) e - tau, 0)^(1 / (alpha - 1)) with tau such that a row sums to one.

    Time O(L S) per head and round of the search for tau.
    """

    gives = frozenset({"simplex"})
    visible_alone = True

    def __init__(self, config: EntmaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        if config.adaptive:
            share = config.alpha - 1
            start = log(share / (1 - share))
            self.sparsity = nn.Parameter(torch.full((dims.heads, 1, 1), start))
            self.starts = {"sparsity": start}

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row."""
        energy = energy / self.config.temperature
        alpha = self._alpha(at_least_single(energy).dtype)
        solve = _solver(energy, alpha)
        weights = sparse_weights(solve, energy, allowed, alpha=alpha, far=self._far())
        return Normalized(weights)

    def _alpha(self, dtype: torch.dtype) -> Alpha:
        if self.config.adaptive:
            return 1 + torch.sigmoid(self.sparsity.to(dtype)).clamp(min=LEAST)
        return self.config.alpha

    def _far(self) -> float:
        # what is 1 below once energies are times alpha - 1
        return 1 / (LEAST if self.config.adaptive else self.config.alpha - 1)

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Search the threshold; one differentiable Newton step from the root has its gradient."""
        zero = torch.zeros_like(energy[0])
        if not any(allowed):
            return torch.stack([zero] * len(allowed))
        power = zero + self.config.alpha - 1
        if self.config.adaptive:
            power = 1 / (1 + torch.exp(-self.sparsity[one.head, 0, 0]))
            power = power if float(power.detach()) > LEAST else 0 * power + LEAST
        scaled = [power * e / self.config.temperature for e in energy]
        seen = [z for z, a in zip(scaled, allowed, strict=True) if a]
        threshold = _root([float(z.detach()) for z in seen], float(power.detach()))
        support = [z for z in seen if float(z.detach()) > threshold]
        excess = sum(((z - threshold) ** (1 / power) for z in support), zero) - 1
        slope = sum(((z - threshold) ** (1 / power - 1) for z in support), zero) / power
        moved = threshold + excess / slope.detach()
        return torch.stack(
            [
                (z - moved) ** (1 / power) if a and float((z - moved).detach()) > 0 else zero
                for z, a in zip(scaled, allowed, strict=True)
            ]
        )


def _solver(energy: Energy, alpha: Alpha) -> Callable[[Energy], Weights]:
    """How tau is found: by few steps, after each of which one looks whether a row needs more.

    A GPU would have to wait for that, and halves the interval as often as may be needed.
    """
    if energy.is_cpu and (isinstance(alpha, Tensor) or alpha <= 2):
        return partial(newton_weights, alpha=alpha)
    wide = at_least_single(energy).dtype
    # filled in where the energies are: a copy from the host would make it wait
    given = alpha if isinstance(alpha, Tensor) else energy.new_full((), alpha, dtype=wide)
    return partial(entmax.entmax_bisect, alpha=given.detach(), n_iter=_halvings(wide))


def _halvings(dtype: torch.dtype) -> int:
    """How often the interval of tau is halved until it is below the precision."""
    return 6 - round(log2(torch.finfo(dtype).eps))


def _root(values: list[float], power: float) -> float:
    """The threshold at which the weights sum to one, by halving."""
    low, high = max(values) - 1, max(values)
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(max(z - middle, 0.0) ** (1 / power) for z in values)
        low, high = (middle, high) if total >= 1 else (low, middle)
    return (low + high) / 2
