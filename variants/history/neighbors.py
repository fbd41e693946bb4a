"""Numbers of a key and of its neighbors as features, which both structural biases of Cohn share."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims, QueryShape
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.history import History
from bench.api.one_query import OneQuery
from bench.api.shapes import Features
from bench.api.source import Memory, Tree, leaf


@dataclass(frozen=True, kw_only=True)
class NeighborsConfig(Config):
    """Options of features of a key and its neighbors."""

    named: ClassVar[str]
    """The component, for sentences about its options."""
    window: Annotated[int, IntRange(0, 8)] = 1
    """Neighbors seen on each side of a key, k (keys)."""

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 0:
            raise InvalidConfig(f"{self.named}: window must be at least 0, got {self.window}.")


class Neighbors(History):
    """Features of key s are one number of each of the keys s - k ... s + k; zeros at first.

    A subclass says which number a step leaves: `update` and `oracle_update` write `numbers`.
    """

    needs = frozenset({"weights", "takes_features"})

    def __init__(self, config: NeighborsConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.reach = config.window
        self.num_features = 2 * config.window + 1

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Zero for every key."""
        assert memory is not None, "it works in cross attention only"
        keys = memory.num_keys
        shape = (like.rows, like.heads, keys)
        return {"numbers": torch.zeros(shape, dtype=like.dtype, device=like.device)}

    def features(self, call: Call, state: Tree) -> Features:
        """Numbers before this query, in windows."""
        return beside(leaf(state, "numbers"), self.reach).unsqueeze(2)

    def oracle_numbers(self, one: OneQuery, state: dict[str, list[Tensor]]) -> list[Tensor]:
        """The number of each key before this query."""
        return state.get("numbers", [one.key.new_zeros(()) for _ in range(one.num_keys)])

    def oracle_features(
        self, one: OneQuery, state: dict[str, list[Tensor]]
    ) -> Float[Tensor, "S F"]:
        """Each key's window, number by number."""
        numbers = self.oracle_numbers(one, state)
        rows = [torch.stack(oracle_beside(numbers, s, self.reach)) for s in range(one.num_keys)]
        return torch.stack(rows)


def beside(x: Float[Tensor, "B H S"], reach: int) -> Float[Tensor, "B H S W"]:
    """Stack x[s - reach] ... x[s + reach] for every s, zeros beyond both ends."""
    return functional.pad(x, (reach, reach)).unfold(-1, 2 * reach + 1, 1)


def oracle_beside(x: list[Tensor], s: int, reach: int) -> list[Tensor]:
    """The same for one key of one row."""
    zero = x[0].new_zeros(())
    return [x[near] if 0 <= near < len(x) else zero for near in range(s - reach, s + reach + 1)]
