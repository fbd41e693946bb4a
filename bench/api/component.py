"""Components of attention: what those of every axis have; every hook has a plain-loop twin.

The class of an axis is in a module of its name: `score`, `position`, `mask`, `normalizer`,
`readout`, `history`. The twin (`oracle...`) answers one query of one head of one unpadded example
with Python loops. It is what the vectorized hook is tested against in float64.
"""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Dims, QueryShape
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.inputs import NO_INPUTS, Inputs
from bench.api.source import Memory, Source, Tree


class Component(HasCapabilities):
    """One choice on one axis of attention.

    A subclass is final and registered with `register`; it writes only its own branch of the
    memory and of the state.
    """

    time_exponent: float = 2.0
    """Power of the length with which its operations grow, where that is more than a number for each
    pair of query and key; the chain knows by itself where less is done."""
    memory_exponent: float = 2.0
    """The same for the most bytes that are held at once."""

    branch: str = ""
    """Name of this component's branch of memory and state; the chain numbers stacked ones."""
    key_inputs: Inputs = NO_INPUTS
    """Numbers wanted beside every key, by name, projected by the slot (gates, rates, decays).

    A hook finds them as `leaf(call.memory.source.extras, name)`, `B Hk S w`; `B 1 S w` where all
    heads share them."""
    query_inputs: Inputs = NO_INPUTS
    """The same beside every query: `leaf(call.extras, name)`, `B L Hq w`."""

    def __init__(self, config: Config, dims: Dims) -> None:
        super().__init__()

    def prepare(self, source: Source) -> Tree:
        """Compute what depends on the source alone, once a source.

        A hook finds it again as `leaf(call.memory.parts, self.branch, name)`.
        """
        return {}

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """State before the first query; empty where nothing is carried."""
        return {}

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """Terms of one query, from what the oracles wrote down for each head of it."""
        return {}
