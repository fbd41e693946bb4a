"""Python's random numbers from torch's seeds, for data generated from lists and words."""

import random

import torch

from bench.api.selector import parse
from bench.api.task import Task

MOST = 32_000
"""Largest number of examples for a non-neural baseline; about two seconds."""


def drawing(generator: torch.Generator) -> random.Random:
    """A Python random stream for one batch, seeded by a torch generator."""
    return random.Random(int(torch.randint(2**62, (), generator=generator)))


def shown_to_networks(task: type[Task], most: int = MOST) -> int:
    """Examples that a network sees under the preset `quick`; a non-neural baseline gets as many.

    Generated data are unlimited, and a baseline with fewer examples would look weak.

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
