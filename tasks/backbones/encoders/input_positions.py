"""Positions added to embeddings in front of encoders that do not know any order."""

from typing import Annotated, Literal

from bench.api import registry
from bench.api.call import Dims
from bench.api.config import Choices
from bench.api.position import POSITIONS, Position
from bench.api.selector import Selector

Kind = Annotated[Literal["off", "sinusoid", "learned"], Choices(("off", "sinusoid", "learned"))]


def positions(kind: Literal["off", "sinusoid", "learned"], width: int) -> Position | None:
    """Build the positions of this name, or nothing."""
    if kind == "off":
        return None
    dims = Dims(1, 1, width, width, width, width, regime="self")
    return registry.make(POSITIONS, Selector(kind), dims)
