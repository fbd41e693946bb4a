"""Adaptive span: each head learns how far back it reads.

Sukhbaatar et al., 2019, "Adaptive attention span in transformers",
https://arxiv.org/abs/1905.07799, section 2.2.

Deviations: a query sees its own key too, which the paper leaves out. Spans start at half of the
largest one. The ramp lies behind the span, so that up to R - 1 keys beyond the largest span are
read. The learned share is clamped where it is read, not after each update, and stays where it is
once it is outside. A cache keeps as many keys as the largest span may read, and all of them are
computed, so that a short span saves no time. Without causality the span reaches as far ahead as
back. A query with no real key within its span reads zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.masked_softmax import masked_softmax
from variants.one_sequence import ONE_SEQUENCE
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class AdaptiveSpanConfig(Config):
    """Options of the span."""

    largest: Annotated[int, IntRange(2, 4096, log=True)] = 64
    """Longest span that a head may learn, S (keys)."""
    ramp: Annotated[int, IntRange(2, 64, log=True)] = 8
    """Keys over which the mask falls from one to zero, R (keys)."""

    def __post_init__(self) -> None:
        """Check both."""
        if min(self.largest, self.ramp) < 1:
            raise InvalidConfig(
                "adaptive_span: largest and ramp must be at least 1, "
                f"got {self.largest} and {self.ramp}."
            )


@register(
    "normalizer",
    "adaptive_span",
    config=AdaptiveSpanConfig,
    citation=Citation(
        text="Sukhbaatar et al., 2019", url="https://arxiv.org/abs/1905.07799", where="section 2.2"
    ),
)
class AdaptiveSpanNormalizer(Normalizer):
    """m(d) exp(e) over its sum, m(d) = clamp((R + z - d) / R, 0, 1) for a key d places away.

    z is S times a learned number between zero and one, by head; their mean over heads is the term
    `span`, which the loss `span_penalty` keeps short. Time O(L S) per head.
    """

    # not `simplex`: where padding lies between a query and its keys, none may be within the span
    gives = frozenset({"ordered", "spans"})
    unsupported = ONE_SEQUENCE
    starts = {"share": 0.5}
    visible_alone = True

    def __init__(self, config: AdaptiveSpanConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.reach = config.largest + config.ramp - 1
        self.share = nn.Parameter(torch.full((dims.heads, 1, 1), 0.5))

    def span(self) -> Float[Tensor, "Hq 1 1"]:
        """Z of each head, in keys."""
        return self.config.largest * self.share.clamp(0, 1)

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Lower the energies of far keys by the logarithm of the mask."""
        wide = at_least_single(energy)
        distance = (call.position[:, None] - call.key_position).abs().to(wide.dtype)
        mask = (
            (self.config.ramp + self.span().to(wide.dtype) - distance) / self.config.ramp
        ).clamp(max=1)
        within = (mask > 0)[None]
        # the logarithm of a place out of the span would have a gradient that is not a number
        lowered = wide + torch.where(within, mask, 1.0).log()
        seen = within if allowed is None else within & allowed
        weights = masked_softmax(lowered, seen).to(energy.dtype)
        return Normalized(weights, terms={"span": self.span().mean().expand(call.query.shape[::2])})

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Mask and exponential, key by key, over their sum."""
        share = self.share[one.head, 0, 0]
        share = torch.zeros_like(share) if share < 0 else share
        share = torch.ones_like(share) if share > 1 else share
        one.said["span"] = self.config.largest * share
        zero = torch.zeros_like(energy[0])
        top = max((float(e.detach()) for e, a in zip(energy, allowed, strict=True) if a), default=0)
        terms = []
        for s in range(one.num_keys):
            far = abs(one.position - s)
            mask = (self.config.ramp + self.config.largest * share - far) / self.config.ramp
            mask = zero + 1 if mask > 1 else mask
            seen = allowed[s] and bool(mask > 0)
            terms.append(mask * torch.exp(energy[s] - top) if seen else zero)
        total = sum(terms, zero)
        return torch.stack([term / total if float(total.detach()) else term for term in terms])

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """The mean span of the heads."""
        spans = [head["span"] for head in said]
        return {"span": sum(spans[1:], spans[0]) / len(spans)}


register_recipe(
    "adaptive_span",
    Recipe(axes={"normalizer": "adaptive_span", "loss": "span_penalty"}, main="normalizer"),
    module=__name__,
    title="Adaptive attention span",
    citation=Citation(
        text="Sukhbaatar et al., 2019", url="https://arxiv.org/abs/1905.07799", where="section 2.2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Sukhbaatar et al. report language models of characters with 12 and 24 layers, with spans "
        "of up to 8,000 characters in few heads and short ones in the others, at less memory and "
        "time. Sequences of this task have at most 128 symbols, which is far less than one such "
        "span."
    ),
)
