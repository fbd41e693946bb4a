"""Gaussian kernel: weights fall with the squared distance of query and key (kernel regression).

Nadaraya, 1964, "On estimating regression", https://doi.org/10.1137/1109020, and Watson, 1964,
"Smooth regression analysis", https://www.jstor.org/stable/25049340: softmax of this energy is their
estimator under a Gaussian kernel.

Deviations: the bandwidth may be learned, one per head; queries and keys may be projected. The
square of a distance is written out, so that in single precision it is wrong by about 1e-7 of the
squared norms: subtract a center from inputs that lie far from zero, such as years.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, FloatRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.softplus import inverse_softplus


@dataclass(frozen=True, kw_only=True)
class GaussianKernelConfig(Config):
    """Options of the Gaussian kernel."""

    beta: Annotated[float, FloatRange(0.01, 10.0, log=True), Legal(0)] = 1.0
    """One over the squared bandwidth (per unit of squared distance); 0 averages all keys."""
    learned: Annotated[bool, Choices((True, False))] = True
    """Whether beta is learned, one per head, from that value on."""

    def __post_init__(self) -> None:
        """Check the bandwidth."""
        if self.beta < 0 or (self.learned and not self.beta):
            raise InvalidConfig(
                "gaussian_kernel: beta must be positive, or 0 where it is not learned, "
                f"got {self.beta}."
            )


@register(
    "score",
    "gaussian_kernel",
    title="Gaussian kernel (Nadaraya-Watson)",
    config=GaussianKernelConfig,
    citation=Citation(text="Nadaraya, 1964; Watson, 1964", url="https://doi.org/10.1137/1109020"),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class GaussianKernelScore(Score):
    """-beta/2 |q - k|^2 = beta (q.k - |k|^2 / 2) - beta/2 |q|^2; time O(L S E) per head.

    Fused attention reads it as a dot product with two more units, which hold the two norms: softmax
    would cancel that of the query, and a sink beside it would not. In a raw slot it needs queries
    and keys of equal width.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"dot_form", "key_local", "never_positive"})
    copies_keys = True
    starts_outside = (
        "squared distances grow with the width, and `beta` is an option in units of the states; "
        "a kernel that is narrower than the distances reads the nearest key"
    )

    def __init__(self, config: GaussianKernelConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.fixed = config.beta
        self.raw_beta: nn.Parameter | None = None
        if config.learned:
            start = inverse_softplus(config.beta)
            self.raw_beta = nn.Parameter(torch.full((dims.heads, 1, 1), start))
            self.starts = {"raw_beta": start}

    def beta(self) -> Float[Tensor, "H 1 1"] | float:
        """One over the squared bandwidth of each head."""
        return self.fixed if self.raw_beta is None else functional.softplus(self.raw_beta)

    def prepare(self, source: Source) -> Tree:
        """Half the squared norms of the keys, which a rotation leaves as they are."""
        return {"half": source.key.square().sum(-1, keepdim=True) / 2}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """The square written out: one matrix product and two norms."""
        heads, beta = call.query.shape[1], self.beta()
        key = expand_heads(call.memory.source.key, heads)
        half = expand_heads(leaf(call.memory.parts, self.branch, "half"), heads)
        of_query = call.query.square().sum(-1, keepdim=True) / 2
        product = (beta * call.query) @ key.transpose(-1, -2)
        return product - beta * (of_query + half.transpose(-1, -2))

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """[q, 1, -|q|^2 / 2] times beta and [k, -|k|^2 / 2, 1]."""
        half = leaf(call.memory.parts, self.branch, "half")
        of_query = call.query.square().sum(-1, keepdim=True) / -2
        query = torch.cat((functional.pad(call.query, (0, 1), value=1.0), of_query), -1)
        key = torch.cat((call.memory.source.key, -half), -1)
        return self.beta() * query, functional.pad(key, (0, 1), value=1.0), 1.0

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The squared distance, key by key."""
        beta = self.beta()
        mine = beta if isinstance(beta, float) else beta[one.head, 0, 0]
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            for e in range(one.query.shape[0]):
                total = total + (one.query[e] - one.key[s, e]) ** 2
            found.append(-mine / 2 * total)
        return torch.stack(found)
