"""StableEmit: a monotonic walk whose stop probabilities are discounted in training.

Inaguma & Kawahara, 2021, "StableEmit: selection probability discount for reducing emission latency
of streaming monotonic attention ASR", https://arxiv.org/abs/2107.00635, section 3. Where many keys
in a row say the same, as frames of one word do, a walk stops for certain in training though no
single stop is likelier than not, and so a hard walk never stops. With the discount each stop must
be likelier to keep the total weight, which the loss `quantity` asks for.

Deviations: those of the walk. The discount is there from the first step; the authors' code can
switch it on later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api import registry
from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, OfAxis
from bench.api.errors import InvalidConfig, Refused
from bench.api.normalizer import NORMALIZERS, Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Memory, Source, Tree
from variants.normalizers.monotonic_walk import MonotonicNormalizer
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class StableEmitConfig(Config):
    """Options of StableEmit."""

    walk: Annotated[Selector, OfAxis("normalizer")] = Selector("raffel_monotonic")
    """The monotonic walk, with its own options."""
    discount: Annotated[float, FloatRange(0.0, 0.9)] = 0.5
    """Share of each stop probability that is taken away in training."""

    def __post_init__(self) -> None:
        """Check the discount."""
        if not 0 <= self.discount < 1:
            raise InvalidConfig(f"stable_emit: discount must lie in [0, 1), got {self.discount}.")


@register(
    "normalizer",
    "stable_emit",
    config=StableEmitConfig,
    citation=Citation(
        text="Inaguma & Kawahara, 2021", url="https://arxiv.org/abs/2107.00635", where="section 3"
    ),
)
class StableEmitNormalizer(Normalizer):
    """p = (1 - discount) sigmoid(e + r) in training, sigmoid(e + r) else; time is the walk's."""

    gives = frozenset({"stream", "delays"})
    unsupported: ClassVar[Mapping[Capability, str]] = MonotonicNormalizer.unsupported
    default_read = "hard"
    reads = ("train", "expected", "hard")

    def __init__(self, config: StableEmitConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.discount = config.discount
        walk = registry.make(NORMALIZERS, config.walk, dims)
        if not isinstance(walk, MonotonicNormalizer):
            raise Refused(f"stable_emit discounts the stops of a walk, and {config.walk} has none.")
        self.walk = walk
        self.own_scores = walk.own_scores
        self.lookback = walk.lookback
        self.stays_at_end = walk.stays_at_end
        self.time_exponent = walk.time_exponent

    def prepare(self, source: Source) -> Tree:
        """What the walk prepares."""
        return self.walk.prepare(source)

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Where the walk starts."""
        return self.walk.start(memory, like)

    def stop_probability(self, energy: Energy) -> Energy:
        """Without the discount, as trained models read."""
        return self.walk.stop_probability(energy)

    def stop_weights(self, call: Call, allowed: Allowed) -> Weights:
        """What the walk reads at a stop."""
        return self.walk.stop_weights(call, allowed)

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """In training, add the noise of the walk and discount; then walk without further noise.

        While the walk warms up there are no stops, and so no discount.
        """
        if call.read != "train" or call.progress < self.walk.walk.warm_up:
            return self.walk.normalize(energy, allowed, state, call)
        rows, heads, _, num_keys = energy.shape
        wide = at_least_single(energy)
        if self.walk.walk.noise:
            name = self.walk.stream_name
            draws = call.drawing.normal(name, rows, heads, call.position, num_keys)
            wide = wide + self.walk.walk.noise * draws.to(wide.dtype)
        if self.discount:
            wide = self._discounted(wide + self.walk.offset) - self.walk.offset
        found = self.walk.normalize(wide, allowed, state, replace(call, read="expected"))
        return Normalized(found.weights.to(energy.dtype), found.state, found.terms)

    def _discounted(self, logit: Energy) -> Energy:
        """The logit of (1 - discount) sigmoid(logit)."""
        kept = logit + log(1 - self.discount)
        return kept - functional.softplus(logit + log(self.discount))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Discount key by key, then the loops of the walk."""
        if one.read != "train" or one.progress < self.walk.walk.warm_up:
            return self.walk.oracle(energy, allowed, state, one)
        offset, noise = self.walk.offset[one.head, 0, 0], self.walk.walk.noise
        if noise:
            assert one.noise is not None, "read='train' needs noise"
            place, name = torch.tensor([one.position]), self.walk.stream_name
            draws = one.noise.normal(name, one.row + 1, one.head + 1, place, len(energy))
            energy = energy + noise * draws[one.row, one.head, 0].to(energy.dtype)
        lowered = []
        for e in energy:
            stop = (1 - self.discount) / (1 + torch.exp(-e - offset))
            lowered.append(torch.log(stop / (1 - stop)) - offset)
        silent = replace(one, read="expected")
        return self.walk.oracle(torch.stack(lowered), allowed, state, silent)

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """The delays of the walk."""
        return self.walk.oracle_terms(said)
