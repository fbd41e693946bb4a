"""What an oracle sees: one query of one head, which it answers by plain loops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Read
from bench.api.noise import Noise

OracleState = dict[str, Any]
"""What an oracle carries from query to query: tensors, numbers or lists, as its component likes."""


@dataclass
class OneQuery:
    """What an oracle sees: one query, one head, one example without padding."""

    query: Float[Tensor, " Eq"]
    key: Float[Tensor, "S Ek"]
    value: Float[Tensor, "S Ev"]
    head: int
    position: int
    """Of the query, 0-based."""
    causal: bool
    read: Read
    tokens: list[int] | None = None
    row: int = 0
    """Index in the batch, which addresses the noise."""
    noise: Noise | None = None
    progress: float = 1.0
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    """Declared inputs of this query, by name; those of `query_inputs` are of its head."""
    key_extras: Mapping[str, Float[Tensor, "S w"]] = field(default_factory=dict)
    """Declared inputs of the keys of its head, by name."""
    said: dict[str, Tensor] = field(default_factory=dict)
    """What oracles write down for terms, by name; see `Component.oracle_terms`."""

    @property
    def num_keys(self) -> int:
        """S, all of them real."""
        return self.key.shape[0]

    def visible(self, index: int) -> bool:
        """Whether causality lets the query see this key."""
        return not self.causal or index <= self.position
