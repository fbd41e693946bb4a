"""Projections of layers that read the keys or values of a layer below."""

from collections.abc import Mapping
from typing import ClassVar

from bench.api.capabilities import Capability
from variants.heads.projections import JoinedHeads


class LinkedHeads(JoinedHeads):
    """Joined heads that stand in a stack of causal layers; a subclass says what they read."""

    needs: ClassVar[frozenset[Capability]] = frozenset({"layers_below"})
    unsupported: ClassVar[Mapping[Capability, str]] = dict.fromkeys(
        ("cross", "self", "pool"),
        "it reads a layer below it in a stack of causal self-attention, so it needs such a place",
    )
