"""The axes on which things are registered: their names, their order and their defaults."""

from collections.abc import Mapping
from typing import Generic, TypeVar

CHAIN_AXES = ("position", "score", "mask", "normalizer", "readout", "history")
"""Axes of the chain, in the order in which they act."""
VARIANT_AXES = ("head", *CHAIN_AXES, "output", "loss")
"""Axes that a variant selector may set."""
BACKBONE_AXES = ("encoder", "source_order", "decoder", "combiner", "direction", "search")
"""Axes of the backbone that a recipe may fix because its mechanism stands there."""
STACKED = ("position", "history", "loss")
"""Axes on which several components may be joined by '+'."""
AXES = (
    *VARIANT_AXES,
    *BACKBONE_AXES,
    "mechanism",
    "recipe",
    "backbone",
    "joint",
    "task",
    "probe",
    "claim",
)

DEFAULTS: Mapping[str, str] = {
    "head": "auto",
    "position": "none",
    "score": "scaled_dot",
    "mask": "full",
    "normalizer": "softmax",
    "readout": "weighted_sum",
    "history": "none",
    "output": "softmax",
    "loss": "none",
}
"""What a chain uses on an axis that nothing sets; `auto` heads are the slot's own."""

PLAIN = DEFAULTS["score"]
"""Plain attention: the baseline, and the attention of the other slots of a backbone."""
PLAIN_POSITION = "sinusoid"
"""Position of plain attention where keys come from its own sequence."""

ABSENT = {"position": "none", "history": "none", "loss": "none"}
"""The word for nothing, on axes where nothing may stand."""

T = TypeVar("T")


class Axis(str, Generic[T]):
    """Name of an axis, and the type of what is registered on it.

    Each contract declares the axis of its implementations, so that what is found there is typed:
    `find(TASKS, "recall").target` is a `type[Task]`.
    """

    __slots__ = ()
