"""Python's random numbers under torch's seeds, for data that are drawn with lists and words."""

import random

import torch

from bench.api.selector import parse
from bench.api.task import Task

MOST = 32_000
"""Examples that a baseline counts at most, in about two seconds."""


def drawing(generator: torch.Generator) -> random.Random:
    """A stream of Python's own for one batch, which a torch generator seeds."""
    return random.Random(int(torch.randint(2**62, (), generator=generator)))


def shown_to_networks(task: type[Task], most: int = MOST) -> int:
    """Examples that a network sees under the preset `quick`; a baseline counts as many.

    Where data are drawn there are as many as one likes, and a baseline of fewer would look weak.

    Args:
        task: Whose preset it is.
        most: A smaller bound where examples take long to draw; the answer, too, where the protocol
            leaves steps or the size of batches to their defaults.

    >>> from bench.api.task import TaskPreset
    >>> class Drawn(Task):
    ...     presets = {
    ...         "quick": TaskPreset(
    ...             options="", backbone="", protocol="adam[steps=500,batch=16]", seconds=1.0
    ...         )
    ...     }
    >>> shown_to_networks(Drawn), shown_to_networks(Drawn, most=2000)
    (8000, 2000)
    """
    protocol = parse(task.presets["quick"].protocol).options
    steps, batch = protocol.get("steps"), protocol.get("batch")
    if not isinstance(steps, int) or not isinstance(batch, int):
        return most
    return min(most, steps * batch)
