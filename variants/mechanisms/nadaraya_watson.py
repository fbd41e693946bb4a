"""Kernel regression: the weight of a value falls with the distance of its key from the query.

Nadaraya, 1964, "On estimating regression", https://doi.org/10.1137/1109020; Watson, 1964, "Smooth
regression analysis"; as attention in Murphy, 2022, "Probabilistic machine learning: an
introduction", https://probml.github.io/pml-book/book1.html, section 15.4.2.

Deviations: the precision 1 / bandwidth^2 is learned through a softplus, one per head; in the
sources it is a constant of the data. Under multi-head projections the distance is one in a learned
space.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, MixResult, Read
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig, Refused
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Weights
from bench.api.source import Memory, Source, Tree, leaf
from bench.api.variant import Variant
from variants.mechanisms.distance_kernels import (
    COMPACT,
    FLAT,
    KERNELS,
    Kernel,
    compact_kernel,
    oracle_kernel,
)
from variants.normalizers.masked_softmax import masked_softmax
from variants.precision import at_least_single
from variants.softplus import inverse_softplus


@dataclass(frozen=True, kw_only=True)
class NadarayaWatsonConfig(Config):
    """Options of kernel regression."""

    kernel: Annotated[Kernel, Choices(KERNELS)] = "gaussian"
    """How weight falls with distance."""
    beta: float | None = None
    """Precision 1 / bandwidth^2 at the start; none for E^-1/2, the scale of the scaled dot product,
    or 1/(4 E) for kernels with an edge, which keeps keys of unit variance inside."""
    learn: bool = True
    """Whether the precision is learned; `boxcar` and `constant` have no gradient to learn it by."""
    ard: bool = False
    """Whether each dimension learns a precision of its own."""
    leave_one_out: bool = False
    """Whether a query never sees the key of its own position; needs self-attention."""
    empty: Annotated[Literal["zeros", "nearest"], Choices(("zeros", "nearest"))] = "zeros"
    """Output of a query without any key in reach: zero, or the value of the nearest key."""

    def __post_init__(self) -> None:
        """Check the precision and what needs it to be learned."""
        if self.beta is not None and (self.beta < 0 or not math.isfinite(self.beta)):
            raise InvalidConfig(f"nadaraya_watson: beta must be at least 0, got {self.beta}.")
        if self.learn and self.kernel not in FLAT and self.beta == 0:
            raise InvalidConfig("nadaraya_watson: a learned beta cannot be 0; add learn=false.")
        if self.ard and (not self.learn or self.kernel in FLAT):
            raise InvalidConfig(
                "nadaraya_watson: ard=true needs a precision that is learned, "
                f"got learn={self.learn} and kernel={self.kernel}."
            )


@register(
    "mechanism",
    "nadaraya_watson",
    title="Kernel regression (Nadaraya-Watson)",
    config=NadarayaWatsonConfig,
    citation=Citation(
        text="Nadaraya, 1964; Watson, 1964",
        url="https://doi.org/10.1137/1109020",
        where="Murphy, 2022, section 15.4.2",
    ),
    cost=1.1,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Nadaraya writes about regression, so that no advantage over a dot product is claimed. "
        "Here the baseline recalls nearly every pair, which leaves no room above it. On "
        "`kernel_1d` of `families`, which is regression, it has the lower error in each of three "
        "seeds, and two of its kernels of a given width are significantly better."
    ),
)
class NadarayaWatson(Variant):
    """K(u_j) / sum K(u), u_j = sqrt(beta) |q - k_j|; time O(L S E) per head.

    Gaussian exp(-u^2 / 2), Laplace exp(-u), boxcar 1[u <= 1], Epanechnikov max(0, 1 - u^2),
    triangular max(0, 1 - u), constant 1 (mean pooling). The Gaussian needs no distance: |q|^2
    cancels, so that it is a dot product scaled by beta with the bias -beta |k|^2 / 2 on each key.
    Both are counted from the first key, because far from the origin they would lose small distances
    to rounding. Under causality, where keys come in pieces, they are counted from the origin.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"weights", "weighted_sum", "key_local"})
    editable = True

    def __init__(self, config: NadarayaWatsonConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl)
        if config.leave_one_out and dims.regime in ("cross", "pool"):
            raise Refused(
                "nadaraya_watson: leave_one_out=true needs queries that are among the keys, "
                f"and in {dims.regime} attention they are not."
            )
        self.config = config
        self.kernel: Kernel = config.kernel
        self.start_beta = _default_beta(config, dims.key_width)
        if config.beta is not None:
            self.starts_outside = "the precision is the one that was asked for"
        if config.kernel in COMPACT and self.start_beta > 0:
            # as far apart, counted in bandwidths, as keys of unit variance are at the default
            self.spread = min(1.0, (_edged_beta(dims.key_width) / self.start_beta) ** 0.5)
        self.raw_beta: nn.Parameter | None = None
        if config.learn and config.kernel not in FLAT:
            width = dims.key_width if config.ard else 1
            raw = inverse_softplus(self.start_beta)
            self.raw_beta = nn.Parameter(torch.full((dims.heads, 1, width), raw))
            self.starts = {"raw_beta": raw}

    def beta(self, like: Tensor) -> Float[Tensor, "#Hq 1 #E"]:
        """Precision of each head, or of each of its dimensions."""
        if self.raw_beta is None:
            return torch.full((1, 1, 1), self.start_beta, dtype=like.dtype, device=like.device)
        return functional.softplus(self.raw_beta.to(like.dtype))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """A difference, a square and a sum a dimension and pair, or a multiply-add; and the mix."""
        pairs = batch * heads * queries * keys
        a_dimension = {"gaussian": 2, "constant": 0}.get(self.kernel, 3)
        return pairs * (a_dimension * dims.key_width + 2 * dims.value_width)

    def prepare(self, source: Source) -> Memory:
        """Scale the keys, once per source."""
        if self.kernel == "constant":
            return Memory(source)
        key = at_least_single(expand_heads(source.key, self.dims.heads))
        beta = self.beta(key)
        if self.kernel == "gaussian":
            key = self._from_first(key, source)
            scaled = beta * key
            bias = (scaled * key).sum(-1, keepdim=True) / -2
            return Memory(source, {"key": scaled, "bias": bias})
        return Memory(source, {"key": beta.sqrt() * key})

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Weigh every key by its kernel."""
        allowed = self._allowed(call)
        weights = self._weights(call, allowed).to(call.query.dtype)
        if call.edit is not None:
            weights = call.edit(weights, call)
        value = expand_heads(call.memory.source.value, self.dims.heads)
        return MixResult(weights @ value, weights, carried, {})

    def _allowed(self, call: Call) -> Allowed | None:
        if not self.config.leave_one_out:
            return call.allowed
        return call.within((call.key_position != call.position[:, None])[None, None])

    def _weights(self, call: Call, allowed: Allowed | None) -> Weights:
        query = at_least_single(call.query)
        if self.kernel == "constant":
            num_keys = call.memory.num_keys
            return masked_softmax(query.new_zeros(*query.shape[:3], num_keys), allowed)
        key = leaf(call.memory.parts, "key")
        if self.kernel == "gaussian":
            query = self._from_first(query, call.memory.source)
            bias = leaf(call.memory.parts, "bias").transpose(-1, -2)
            return masked_softmax(query @ key.transpose(-1, -2) + bias, allowed)
        # differences, not |q|^2 - 2 q.k + |k|^2, which loses small distances to rounding
        distance = torch.cdist(
            self.beta(query).sqrt() * query, key, compute_mode="donot_use_mm_for_euclid_dist"
        )
        if self.kernel == "laplace":
            return masked_softmax(-distance, allowed)
        return self._compact(distance, allowed)

    def _from_first(
        self, x: Float[Tensor, "B Hq n E"], source: Source
    ) -> Float[Tensor, "B Hq n E"]:
        """Count vectors from the first key, on which no distance and so no gradient depends."""
        if self.dims.regime == "causal":
            return x
        first = at_least_single(expand_heads(source.key[:, :, :1], self.dims.heads))
        return x - first.detach()

    def _compact(self, distance: Weights, allowed: Allowed | None) -> Weights:
        mass = compact_kernel(self.kernel, distance)
        if allowed is not None:
            mass = torch.where(allowed, mass, 0.0)
        total = mass.sum(-1, keepdim=True)
        reached = total > 0
        weights = mass / torch.where(reached, total, 1.0)
        if self.config.empty == "zeros":
            return weights
        return torch.where(reached, weights, _nearest(distance, allowed))

    def oracle(
        self, query: Float[Tensor, "Hq L Eq"], source: Source, read: Read, **call: object
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"]]:
        """Kernels of distances, pair by pair."""
        group, value_group = (query.shape[0] // x.shape[1] for x in (source.key, source.value))
        outputs, rows = [], []
        for head, place in ((h, p) for h in range(query.shape[0]) for p in range(query.shape[1])):
            keys, values = source.key[0, head // group], source.value[0, head // value_group]
            beta = self.beta(query).expand(query.shape[0], 1, query.shape[2])[head, 0]
            distances = {
                s: _oracle_distance(query[head, place], keys[s], beta)
                for s in range(len(keys))
                if self._oracle_sees(place, s)
            }
            weights = self._oracle_weights(distances)
            row = [weights.get(s, query.new_zeros(())) for s in range(len(keys))]
            rows.append(torch.stack(row))
            mixed = (row[s] * values[s] for s in range(len(keys)))
            outputs.append(sum(mixed, torch.zeros_like(values[0])))
        shape = query.shape[:2]
        return torch.stack(outputs).unflatten(0, shape), torch.stack(rows).unflatten(0, shape)

    def _oracle_sees(self, place: int, key: int) -> bool:
        if self.dims.regime == "causal" and key > place:
            return False
        return not (self.config.leave_one_out and key == place)

    def _oracle_weights(self, distances: dict[int, Tensor]) -> dict[int, Tensor]:
        # K(u) / sum K(u) is the same for masses relative to the largest, which never vanish all
        least = min((float(u.detach()) for u in distances.values()), default=0.0)
        masses = {s: oracle_kernel(self.kernel, distances[s], least) for s in distances}
        total = sum(masses.values(), torch.zeros(()))
        if total > 0:
            return {s: masses[s] / total for s in masses}
        if self.config.empty == "nearest" and distances:
            nearest = min(distances, key=lambda s: float(distances[s].detach()))
            return {nearest: torch.ones_like(distances[nearest])}
        return {}


def _default_beta(config: NadarayaWatsonConfig, width: int) -> float:
    if config.beta is not None:
        return config.beta
    return _edged_beta(width) if config.kernel in COMPACT else width**-0.5


def _edged_beta(width: int) -> float:
    return 1 / (4 * width)


def _nearest(distance: Weights, allowed: Allowed | None) -> Weights:
    """One on the nearest allowed key; zeros where none is allowed."""
    seen = distance if allowed is None else distance.masked_fill(~allowed, float("inf"))
    chosen = functional.one_hot(seen.argmin(-1), seen.shape[-1]).to(distance.dtype)
    return chosen if allowed is None else torch.where(allowed, chosen, 0.0)


def _oracle_distance(query: Tensor, key: Tensor, beta: Tensor) -> Tensor:
    total = query.new_zeros(())
    for unit in range(query.shape[0]):
        total = total + beta[unit] * (query[unit] - key[unit]) ** 2
    return torch.sqrt(total)
