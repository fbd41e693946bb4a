"""Tensor product attention: queries, keys and values are sums of outer products of small factors.

Zhang et al., 2025, "Tensor product attention is all you need", https://arxiv.org/abs/2501.06425,
section 3.1: each of the three is the mean over its rank of a factor over heads times a factor over
the width, both linear in the state.

Deviations: a cache holds the factors, and positions turn those of keys over the width as they
arrive, as in the paper. A step of decoding reads the factors as they are; for more queries keys
and values are written out for the call. Queries are turned written out, which equals turning their
factors. The keys of another sequence are written out once.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.fused import softmax_of
from bench.api.packing import Packing, Turn
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Key, Value
from bench.api.source import Source
from variants.heads.projections import Concatenated, oracle_linear, width_of_head


@dataclass(frozen=True, kw_only=True)
class TpaConfig(Config):
    """Options of tensor product attention."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    query_rank: Annotated[int, Choices((2, 4, 6, 8))] = 6
    """Outer products that a query is the mean of."""
    rank: Annotated[int, Choices((1, 2, 4))] = 2
    """The same for keys and for values."""

    def __post_init__(self) -> None:
        """Check the ranks."""
        if min(self.query_rank, self.rank) < 1:
            raise InvalidConfig(
                "tpa: query_rank and rank must be at least 1, "
                f"got {self.query_rank} and {self.rank}."
            )


@dataclass(frozen=True, kw_only=True)
class Factors(Packing):
    """The factors of a key, over heads and then over the width, and those of a value behind them.

    Each is written rank by rank.
    """

    heads: int
    """H."""
    width: int
    """E, of one head."""

    reads_packed = True

    def turned(self, packed: Float[Tensor, "B 1 S F"], turn: Turn) -> Float[Tensor, "B 1 S F"]:
        """Turn the factors of keys over the width: every head is a sum of these vectors."""
        rank = packed.shape[-1] // (2 * (self.heads + self.width))
        ends = (rank * self.heads, rank * (self.heads + self.width))
        over_heads, over_width, values = packed.tensor_split(ends, -1)
        vectors = over_width.squeeze(1).unflatten(-1, (rank, -1)).transpose(1, 2)
        found = turn(vectors).transpose(1, 2).flatten(2).unsqueeze(1)
        return torch.cat((over_heads, found, values), -1)

    def read(
        self,
        query: Float[Tensor, "B H 1 E"],
        packed: Float[Tensor, "B 1 S F"],
        *,
        mask: Tensor | None,
        scale: float,
    ) -> Float[Tensor, "B H 1 E"]:
        """Products with the factors over the width, each weighed by those over heads."""
        keys, values = packed.squeeze(1).chunk(2, -1)
        rank = keys.shape[-1] // (self.heads + self.width)
        asked = query.squeeze(2).mT
        products = [b @ asked * a for a, b in self._by_rank(keys, rank)]
        energy = sum(products[1:], products[0]).mT.unsqueeze(2)
        wide = torch.promote_types(energy.dtype, torch.float32)
        weights = softmax_of(energy.to(wide) * (scale / rank), mask).squeeze(2).to(packed.dtype)
        read = [(weights * a.mT) @ b for a, b in self._by_rank(values, rank)]
        return sum(read[1:], read[0]).unsqueeze(2) / rank

    def _by_rank(
        self, factors: Float[Tensor, "B S n"], rank: int
    ) -> list[tuple[Float[Tensor, "B S H"], Float[Tensor, "B S E"]]]:
        """Both factors of each outer product, as views of what is kept."""
        over_heads, over_width = factors.split((rank * self.heads, rank * self.width), -1)
        pairs = zip(over_heads.chunk(rank, -1), over_width.chunk(rank, -1), strict=True)
        return list(pairs)

    def written(self, packed: Float[Tensor, "B 1 S F"]) -> tuple[Key, Value]:
        """The means of outer products."""
        key, value = packed.squeeze(1).chunk(2, -1)
        return _product(key, self.heads, self.width), _product(value, self.heads, self.width)


@register(
    "head",
    "tpa",
    config=TpaConfig,
    citation=Citation(
        text="Zhang et al., 2025", url="https://arxiv.org/abs/2501.06425", where="section 3.1"
    ),
)
class TpaHeads(Concatenated):
    """Head h of a query, key or value is the mean over r of a_rh b_r, with a and b linear in x.

    Cost: a cache of 2 R (H + E) numbers a token, R for keys and for values; a single query takes
    2 R H E products a key, and for more of them 2 H E numbers of all keys are written out.
    """

    def __init__(
        self,
        config: TpaConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads = config.heads
        width = width_of_head("tpa", heads, query_width)
        self.dims = Dims(heads, heads, width, width, width, query_width, regime)
        self.output_width = query_width
        self.factors = Factors(heads=heads, width=width)
        # each map makes the factors over heads, rank by rank, then those over the width
        self.to_query = _factors(query_width, config.query_rank, heads, width)
        self.to_key = _factors(source_width, config.rank, heads, width)
        self.to_value = _factors(source_width, config.rank, heads, width)
        self.to_output = nn.Linear(query_width, query_width, bias=False)
        nn.init.xavier_uniform_(self.to_output.weight)

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        """Means of outer products."""
        heads, width = self.dims.heads, self.dims.query_width
        return _product(self.to_query(x), heads, width)

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """The factors of keys and values."""
        found = torch.cat((self.to_key(x), self.to_value(x)), -1).unsqueeze(1)
        width = found.shape[-1]
        return Source(found, found, mask=mask, tokens=tokens, shared=width, packing=self.factors)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H E"]:
        """One number after the other."""
        return self._oracle_product(oracle_linear(self.to_query, x))

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "H E"], Float[Tensor, "H E"]]:
        """One number after the other."""
        made = [oracle_linear(layer, x) for layer in (self.to_key, self.to_value)]
        return self._oracle_product(made[0]), self._oracle_product(made[1])

    def _oracle_product(self, numbers: list[Float[Tensor, ""]]) -> Float[Tensor, "H E"]:
        heads, width = self.dims.heads, self.dims.query_width
        rank = len(numbers) // (heads + width)
        found = []
        for h in range(heads):
            for e in range(width):
                total = torch.zeros_like(numbers[0])
                for r in range(rank):
                    total = total + numbers[r * heads + h] * numbers[rank * heads + r * width + e]
                found.append(total / rank)
        return torch.stack(found).unflatten(0, (heads, width))


def _product(factors: Float[Tensor, "B n F"], heads: int, width: int) -> Float[Tensor, "B H n E"]:
    """The mean of R outer products."""
    rank = factors.shape[-1] // (heads + width)
    over_heads, over_width = factors.split((rank * heads, rank * width), -1)
    left, right = over_heads.unflatten(-1, (rank, heads)), over_width.unflatten(-1, (rank, -1))
    return torch.einsum("bnrh,bnre->bhne", left, right) / rank


def _factors(states: int, rank: int, heads: int, width: int) -> nn.Linear:
    """A map to both factors, so large that products begin with variance near 1."""
    layer = nn.Linear(states, rank * (heads + width), bias=False)
    # the mean of R products of two numbers of variance s^2 has variance s^4 / R
    nn.init.normal_(layer.weight, std=(rank**0.25) * states**-0.5)
    return layer


register_recipe(
    "tpa",
    Recipe(axes={"head": "tpa", "position": "rope", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Tensor product attention (TPA)",
    citation=Citation(
        text="Zhang et al., 2025", url="https://arxiv.org/abs/2501.06425", where="section 3.1"
    ),
    cost=1.2,
    default_task=DefaultTask(task="recall"),
    deviations="those of the head.",
    does_not_show=(
        "Zhang et al. report the quality of multi-head attention with a smaller cache, for "
        "language models of 124 million to 1.5 billion parameters with many heads of width 64 or "
        "more. With one or two small heads a sum of a few outer products has little to share."
    ),
)
