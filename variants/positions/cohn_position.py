"""Position bias: the score sees the positions of key and query and the source length.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.1.

Deviations: none. Positions count from zero and features have the order of the released code;
`count_from` and `order` choose the paper's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Features
from bench.api.source import Source, Tree, leaf


@dataclass(frozen=True, kw_only=True)
class CohnPositionConfig(Config):
    """Options of the position bias."""

    order: Annotated[Literal["released", "paper"], Choices(("released", "paper"))] = "released"
    """Features in the order key, length, query (the released code) or query, key, length."""
    count_from: Annotated[int, Choices((0, 1))] = 0
    """Number of the first position."""

    def __post_init__(self) -> None:
        """Check the first number."""
        if self.count_from not in (0, 1):
            raise InvalidConfig(f"cohn_position: count_from must be 0 or 1, got {self.count_from}.")


@register(
    "position",
    "cohn_position",
    config=CohnPositionConfig,
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.1"
    ),
)
class CohnPosition(Position):
    """Features log(1 + s), log(1 + S), log(1 + t) of key s, query t and true length S."""

    needs = frozenset({"takes_features"})
    removes = frozenset({"stream"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it needs the length of the source, which grows under causal self-attention",
    }
    gives_features = True
    num_features = 3

    def __init__(self, config: CohnPositionConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.query_first = config.order == "paper"
        self.first = config.count_from

    def prepare(self, source: Source) -> Tree:
        """Compute the two features that do not depend on the query."""
        places = torch.arange(source.num_keys, device=source.key.device)
        key = torch.log1p((places + self.first).double())
        length = torch.log1p(source.end.double())[:, None]
        found = torch.stack(torch.broadcast_tensors(key, length), -1)
        return {"source": found.to(source.key.dtype)[:, None]}

    def features(self, call: Call) -> Features:
        """Join the position of the query to what was prepared."""
        source = leaf(call.memory.parts, self.branch, "source").unsqueeze(2)
        query = torch.log1p((call.position + self.first).double()).to(source.dtype)
        shape = (source.shape[0], 1, len(query), source.shape[3])
        parts = [source.expand(*shape, 2), query[:, None, None].expand(*shape, 1)]
        return torch.cat(parts[::-1] if self.query_first else parts, -1)

    def oracle_features(self, one: OneQuery) -> Float[Tensor, "S F"]:
        """The same, key by key."""
        rows = []
        for s in range(one.num_keys):
            key = math.log(1 + s + self.first)
            length = math.log(1 + one.num_keys)
            query = math.log(1 + one.position + self.first)
            rows.append([query, key, length] if self.query_first else [key, length, query])
        return one.key.new_tensor(rows)


register_recipe(
    "cohn_position",
    Recipe(axes={"score": "additive", "position": "cohn_position"}, main="position"),
    module=__name__,
    title="Additive attention with positions as features",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.1"
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=fert]"),
    deviations="those of the position component `cohn_position` and of the additive score.",
)
