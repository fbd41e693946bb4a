"""Canon layers: every state also gets a weighted sum of the last few states, unit by unit.

Allen-Zhu, 2025, "Physics of language models: part 4.1, architecture design and the magic of canon
layers", https://arxiv.org/abs/2512.17351, section 3.

Deviations: Canon-A and Canon-B alone, in front of the projections and behind them. Canon-C and
Canon-D stand in front of and inside the feed-forward layer, which belongs to the backbone: its
option `feed_convolution`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.heads import last_real, without_padding
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Query
from bench.api.source import Source, Tree, leaf
from variants.heads.projections import JoinedHeads, oracle_linear, width_of_head

PAPER = Citation(text="Allen-Zhu, 2025", url="https://arxiv.org/abs/2512.17351", where="section 3")


@dataclass(frozen=True, kw_only=True)
class CanonConfig(Config):
    """Options of projections with Canon layers."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    kernel: Annotated[int, Choices((2, 3, 4))] = 4
    """Tokens of each sum, its own among them."""
    at: Annotated[Literal["a", "b", "ab"], Choices(("a", "b", "ab"))] = "ab"
    """In front of the projections (Canon-A), behind them (Canon-B), or both."""


@register("head", "canon", config=CanonConfig, citation=PAPER)
class CanonHeads(JoinedHeads):
    """h_t + sum over i < kernel of w_i * h_(t - i).

    h are the states (A), and queries, keys and values of all heads together (B). The last
    `kernel - 1` vectors of each that are no padding are kept. Time O(kernel L D) more.
    """

    gives = frozenset({"places"})
    unsupported: ClassVar[Mapping[Capability, str]] = dict.fromkeys(
        ("cross", "self", "pool"),
        "its sums run over the states before a state, so it needs a causal place",
    )

    def __init__(
        self,
        config: CanonConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("canon", config.heads, query_width)
        if config.kernel < 1:
            raise InvalidConfig(f"canon: kernel must be at least 1, got {config.kernel}.")
        self.kernel = config.kernel
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=False)
        bound = config.kernel**-0.5  # the start of a convolution in PyTorch
        self.before: nn.Parameter | None = None
        self.behind: nn.Parameter | None = None
        if "a" in config.at:
            taps = torch.empty(query_width, config.kernel)
            self.before = nn.Parameter(nn.init.uniform_(taps, -bound, bound))
        if "b" in config.at:
            taps = torch.empty(3 * query_width, config.kernel)
            self.behind = nn.Parameter(nn.init.uniform_(taps, -bound, bound))

    def start(self, like: QueryShape) -> Tree:
        """Zeros stand before the first state."""
        found = {}
        for name, taps in (("before", self.before), ("behind", self.behind)):
            if taps is not None:
                shape = (like.rows, self.kernel - 1, len(taps))
                found[name] = torch.zeros(shape, dtype=like.dtype, device=like.device)
        return found

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """Add sums of earlier states, project, add sums of earlier projections, split."""
        kept: dict[str, Tensor | Tree] = {}
        if self.before is not None:
            sums, kept["before"] = _sums(x, mask, leaf(past, "before"), self.before)
            x = x + sums
        made = [self.to_query(x), self.to_key(x), self.to_value(x)]
        if self.behind is not None:
            joined = torch.cat(made, -1)
            sums, kept["behind"] = _sums(joined, mask, leaf(past, "behind"), self.behind)
            # part by part, so that a cache of keys holds no memory of queries
            made = [part + more for part, more in zip(made, sums.chunk(3, -1), strict=True)]
        query, key, value = map(self._split, made)
        return query, Source(key, value, mask, tokens), kept

    def oracle_own(
        self, x: Float[Tensor, "L D"]
    ) -> tuple[Float[Tensor, "H L E"], Float[Tensor, "H L E"], Float[Tensor, "H L E"]]:
        """State by state and unit by unit."""
        states = _oracle_canon(list(x), self.before)
        layers = (self.to_query, self.to_key, self.to_value)
        made = [torch.stack([n for lay in layers for n in oracle_linear(lay, s)]) for s in states]
        rows = torch.stack(_oracle_canon(made, self.behind))
        query, key, value = (
            part.unflatten(-1, (self.dims.heads, -1)).transpose(0, 1) for part in rows.chunk(3, -1)
        )
        return query, key, value


def _sums(
    x: Float[Tensor, "B L n"],
    mask: Bool[Tensor, "B L"] | None,
    past: Float[Tensor, "B m n"],
    taps: Float[Tensor, "n k"],
) -> tuple[Float[Tensor, "B L n"], Float[Tensor, "B m n"]]:
    """What is added to the vectors, and the last ones for the next call."""
    wide = torch.cat((past, without_padding(x, mask)), 1)
    sums = functional.conv1d(wide.mT, taps.unsqueeze(1), groups=len(taps)).mT
    return sums, last_real(wide, mask, past.shape[1])


def _oracle_canon(vectors: list[Tensor], taps: nn.Parameter | None) -> list[Tensor]:
    if taps is None:
        return vectors
    found = []
    for t, vector in enumerate(vectors):
        units = []
        for unit in range(len(vector)):
            total = vector[unit]
            for back in range(min(taps.shape[1], t + 1)):
                total = total + taps[unit, taps.shape[1] - 1 - back] * vectors[t - back][unit]
            units.append(total)
        found.append(torch.stack(units))
    return found


register_recipe(
    "canon",
    Recipe(axes={"head": "canon", "score": "scaled_dot"}, main="head"),
    module=__name__,
    title="Canon layers without positions",
    citation=PAPER,
    cost=1.2,
    default_task=DefaultTask(task="offset"),
    rosters=("quick",),
    deviations="those of the heads `canon`.",
)
