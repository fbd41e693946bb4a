"""TUPE: words and absolute positions each have projections of their own, and never meet.

Ke, He & Liu, 2021, "Rethinking positional encoding in language pre-training",
https://arxiv.org/abs/2006.15595, section 3.1, equations 7 and 8.

Deviations: every layer has its own vectors of positions, which the paper shares; positions beyond
the last vector are refused. There is no untied [CLS] symbol, for no sequence here has one. The
variant `tupe` divides both terms by the root of 2 E, as the paper does; the component alone keeps
the scale of the score. Relative numbers (TUPE-R) are `position=tupe+t5_bias`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.per_head_linear import per_head_linear, xavier_per_head

PAPER = Citation(
    text="Ke et al., 2021",
    url="https://arxiv.org/abs/2006.15595",
    where="section 3.1, equations 7 and 8",
)


@dataclass(frozen=True, kw_only=True)
class TupeConfig(Config):
    """Options of untied positions."""

    max_length: Annotated[int, IntRange(512, 4096, log=True)] = 512
    """Positions that have a vector (tokens)."""

    def __post_init__(self) -> None:
        """Check the size of the table."""
        if self.max_length < 1:
            raise InvalidConfig(f"tupe: max_length must be at least 1, got {self.max_length}.")


@register("position", "tupe", config=TupeConfig, citation=PAPER)
class Tupe(Position):
    """(p_i U) . (p_j V) / sqrt(E) is added to the energy; U and V belong to a head, p to none.

    p has the width D of the model. Time O((L + S) D E + L S E) per head, memory O(L S) whether or
    not weights are wanted.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "its positions are of one sequence, and cross attention has two",
        "pool": "its positions are of one sequence, and the query of pooling is not in it",
    }
    changes_energy = True
    multiplies_pairs = True

    def __init__(self, config: TupeConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.scale = dims.key_width**-0.5
        self.table = nn.Parameter(torch.randn(config.max_length, dims.model_width))
        # energies of positions begin with a variance of 1, as those of words do, for one head; for
        # several heads it is larger, about 2.5 for four of them
        width = (dims.heads, dims.model_width, dims.key_width)
        self.to_query = nn.Parameter(xavier_per_head(*width))
        self.to_key = nn.Parameter(xavier_per_head(*width))

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """Project the positions of queries and of keys, and let them meet.

        Raises:
            Refused: A position lies beyond the table.
        """
        keys, end = call.memory.num_keys, call.offset + call.query.shape[2]
        if max(keys, end) > len(self.table):
            raise Refused(
                f"tupe: the table ends at max_length={len(self.table)}, but the sequence has "
                f"{max(keys, end)} tokens; raise max_length."
            )
        heads = self.to_query.shape[0]
        asked = self.table[call.offset : end].expand(1, heads, -1, -1)
        read = self.table[:keys].expand(1, heads, -1, -1)
        query = per_head_linear(asked, self.to_query) * self.scale
        return query @ per_head_linear(read, self.to_key).transpose(-1, -2)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One pair of projected positions per key."""
        query = torch.mv(self.to_query[one.head].t(), self.table[one.position])
        found = []
        for s in range(one.num_keys):
            key = torch.mv(self.to_key[one.head].t(), self.table[s])
            total = one.query.new_zeros(())
            for e in range(len(key)):
                total = total + query[e] * key[e]
            found.append(total / one.key.shape[1] ** 0.5)
        return torch.stack(found)


register_recipe(
    "tupe",
    Recipe(
        axes={
            "score": "scaled_dot",
            "position": "tupe",
            "normalizer": "softmax[temperature=1.4142135623730951]",  # the root of two terms
        },
        main="position",
    ),
    module=__name__,
    title="Untied positions (TUPE)",
    citation=PAPER,
    default_task=DefaultTask(task="offset"),
    deviations="those of the position component `tupe`.",
)
