"""Gates, rates and other numbers that attention wants beside every query or key.

A part declares them by name. The slot projects them from the states that queries and keys are made
of, without a bias: what a part adds, it owns. They come head by head, or once for all heads.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.errors import Refused


class SlotInput(NamedTuple):
    """Numbers that are projected from the states of a slot."""

    width: int
    """Numbers for each head."""
    rank: int = 0
    """Width of the vector between two maps; 0 makes one full map."""
    shared: bool = False
    """Whether all heads have the same numbers: one head stands in their place, `B 1 S w` beside
    keys and `B L 1 w` beside queries, so that a cache keeps them once."""
    detached: bool = False
    """Whether the states learn nothing through it, for a part that a loss of its own trains."""

    def num_heads(self, heads: int) -> int:
        """Heads that the numbers come in, of a slot with so many."""
        return 1 if self.shared else heads

    def head(self, index: int) -> int:
        """Where the numbers of a head stand."""
        return 0 if self.shared else index


Inputs = Mapping[str, SlotInput]
"""By name."""

NO_INPUTS: Inputs = MappingProxyType({})


class InputMap(nn.Module):
    """Projects one input: a full map, or two maps with a narrow vector between."""

    def __init__(self, wanted: SlotInput, states: int, heads: int) -> None:
        super().__init__()
        self.heads = wanted.num_heads(heads)
        self.detached = wanted.detached
        narrow = wanted.rank or states
        self.inward = nn.Linear(states, narrow, bias=False) if wanted.rank else None
        self.outward = nn.Linear(narrow, self.heads * wanted.width, bias=False)

    def forward(self, x: Float[Tensor, "B n D"]) -> Float[Tensor, "B n H w"]:
        """Project all states."""
        x = x.detach() if self.detached else x
        inner = x if self.inward is None else self.inward(x)
        return self.outward(inner).unflatten(-1, (self.heads, -1))

    def oracle(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H w"]:
        """The same for one state, number by number."""
        x = x.detach() if self.detached else x
        numbers = x if self.inward is None else _mapped(self.inward, x)
        found = _mapped(self.outward, numbers)
        width = len(found) // self.heads
        return torch.stack([found[h * width : (h + 1) * width] for h in range(self.heads)])


def _mapped(layer: nn.Linear, x: Tensor) -> Tensor:
    return torch.stack([(row * x).sum() for row in layer.weight])


def input_maps(wanted: Inputs, states: int, heads: int) -> nn.ModuleDict:
    """One map for each input that is wanted."""
    return nn.ModuleDict({name: InputMap(one, states, heads) for name, one in wanted.items()})


def maps_of(maps: nn.ModuleDict) -> dict[str, InputMap]:
    """The same maps, with their type."""
    return {name: found for name, found in maps.items() if isinstance(found, InputMap)}


def all_inputs(parts: Mapping[str, Inputs]) -> dict[str, SlotInput]:
    """What several parts want; no two of them may use one name.

    Args:
        parts: Inputs of each part, by the name of the part.

    Raises:
        Refused: Two of them do.
    """
    found: dict[str, SlotInput] = {}
    owners: dict[str, str] = {}
    for owner, wanted in parts.items():
        for name, one in wanted.items():
            if name in found:
                raise Refused(
                    f"{owners[name]} and {owner} both want an input {name!r}; use one of them."
                )
            assert not hasattr(nn.ModuleDict, name), f"{owner}: {name!r} is a word of PyTorch"
            found[name], owners[name] = one, owner
    return found
