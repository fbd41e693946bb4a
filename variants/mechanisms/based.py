"""Based: features whose products are the first three terms of the exponential's Taylor series.

Arora et al., 2024, "Simple linear attention language models balance the recall-throughput
tradeoff", https://arxiv.org/abs/2402.18668, section 4.1.

Deviations: queries and keys are made small by a map behind the slot's projections, not by the
projections themselves. The paper's layers of attention in a window are other layers of its
network, and are not here. 1e-6 is added to the sum of weights.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed
from bench.api.source import Tree, leaf
from variants.mechanisms.chunked_state import CHUNK
from variants.mechanisms.feature_attention import FeatureAttention
from variants.mechanisms.turned import Turned
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class BasedConfig(Config):
    """Options of Based."""

    width: Annotated[int, IntRange(2, 32, log=True)] = 16
    """d', the width of queries and keys before the series; there are 1 + d' + d'^2 features."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"based: width must be at least 1, got {self.width}.")


@register(
    "mechanism",
    "based",
    title="Linear attention (Based)",
    config=BasedConfig,
    citation=Citation(
        text="Arora et al., 2024", url="https://arxiv.org/abs/2402.18668", where="section 4.1"
    ),
    cost=2.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Arora et al. put it beside layers of attention in a small window, and report more recall "
        "than other recurrences with a state of the same size, for language models of up to 1.3 "
        "billion parameters. Here it stands without these layers, beside softmax attention, which "
        "keeps every pair."
    ),
)
class Based(Turned, FeatureAttention):
    """f(q).f(k) = 1 + s + s^2 / 2 with s = q.k / sqrt(d'), which is never below 1/2.

    Time O((L + S) d'^2 Ev) per head, and as much memory of state as d'^2 values.
    """

    def __init__(self, config: BasedConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, 1 + config.width + config.width**2)
        self.width = config.width
        shape = dims.heads, dims.key_width, config.width
        self.to_query = nn.Parameter(xavier_per_head(*shape))
        self.to_key = nn.Parameter(xavier_per_head(*shape))

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """The series of the key made small."""
        return self._series(per_head_linear(x, self.to_key.to(x.dtype)))

    def of_queries(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """The series of the query made small."""
        return self._series(per_head_linear(x, self.to_query.to(x.dtype)))

    def in_order(self, call: Call, carried: Tree) -> tuple[Mixed, Tree]:
        """Pairs of a chunk are the series of s itself.

        That takes d' products a pair, where features take 1 + d' + d'^2.
        """
        source, heads = call.memory.source, self.dims.heads
        query, key, value = (
            at_least_single(expand_heads(x, heads)) for x in (call.query, source.key, source.value)
        )
        # values that are all 1 sum up the weights
        value = torch.cat((value, torch.ones_like(value[..., :1])), -1)
        if source.mask is not None:
            real = source.mask[:, None, :, None]
            key, value = torch.where(real, key, 0.0), torch.where(real, value, 0.0)
        small = per_head_linear(query, self.to_query.to(query.dtype))
        keys = per_head_linear(key, self.to_key.to(key.dtype))
        before = torch.cat((leaf(carried, "matrix"), leaf(carried, "normalizer")), -1)
        both, after = self._in_chunks(small, keys, value, before, empty=not call.offset)
        output = both[..., :-1] / (both[..., -1:] + self.eps)
        return output, {"matrix": after[..., :-1], "normalizer": after[..., -1:]}

    def _in_chunks(
        self,
        query: Float[Tensor, "B H n W"],
        key: Float[Tensor, "B H n W"],
        value: Float[Tensor, "B H n w"],
        before: Float[Tensor, "B H F w"],
        *,
        empty: bool,
    ) -> tuple[Float[Tensor, "B H n w"], Float[Tensor, "B H F w"]]:
        """What is read after each step, and what is kept in the end; at first it may be empty."""
        length = query.shape[2]
        chunk = min(CHUNK, length)
        missing = -length % chunk
        query, key, value = (
            functional.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, chunk))
            for x in (query, key, value)
        )
        energy = self.width**-0.5 * query @ key.mT
        read = (1 + energy + energy.square() / 2).tril() @ value
        kept = torch.cat((before.unsqueeze(2), self._series(key).mT @ value), 2).cumsum(2)
        if not empty or kept.shape[2] > 2:
            read = read + self._series(query) @ kept[:, :, :-1]
        # a copy, without the memory of the chunks before
        return read.flatten(2, 3)[:, :, :length], kept[:, :, -1].clone()

    def _series(self, x: Float[Tensor, "B H *n W"]) -> Float[Tensor, "B H *n F"]:
        """[1, x / d'^(1/4), x x' / sqrt(2 d')]."""
        # the few are scaled, not their many products
        scaled = x * (2 * self.width) ** -0.5
        pairs = (scaled.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
        return torch.cat((torch.ones_like(x[..., :1]), x * self.width**-0.25, pairs), -1)

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Term by term."""
        return self._oracle_series(x, self.to_key[head])

    def oracle_of_query(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Term by term."""
        return self._oracle_series(x, self.to_query[head])

    def _oracle_series(
        self, x: Float[Tensor, " E"], matrix: Float[Tensor, "E W"]
    ) -> Float[Tensor, " F"]:
        small = []
        for unit in range(self.width):
            small.append(sum((x[e] * matrix[e, unit] for e in range(len(x))), x.new_zeros(())))
        terms = [x.new_ones(())] + [a / self.width**0.25 for a in small]
        terms += [a * b / (2 * self.width) ** 0.5 for a in small for b in small]
        return torch.stack(terms)
