"""Projections of layers that read the keys or values of a layer below."""

from collections.abc import Mapping
from typing import ClassVar

from bench.api.capabilities import Capability
from bench.api.errors import InvalidConfig
from variants.heads.projections import JoinedHeads


class LinkedHeads(JoinedHeads):
    """Joined heads that stand in a stack of causal layers; a subclass says what they read."""

    needs: ClassVar[frozenset[Capability]] = frozenset({"layers_below"})
    unsupported: ClassVar[Mapping[Capability, str]] = dict.fromkeys(
        ("cross", "self", "pool"),
        "it reads a layer below it in a stack of causal self-attention, so it needs such a place",
    )


def width_of_head(name: str, heads: int, model_width: int) -> int:
    """Width of each of some heads.

    Raises:
        InvalidConfig: They do not divide the model width.
    """
    if heads < 1 or model_width % heads:
        raise InvalidConfig(
            f"{name}: heads must divide the model width {model_width}, got {heads}."
        )
    return model_width // heads
