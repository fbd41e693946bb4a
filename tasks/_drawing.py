"""Python's random numbers under torch's seeds, for data that are drawn with lists and words."""

import random

import torch


def drawing(generator: torch.Generator) -> random.Random:
    """A stream of Python's own for one batch, which a torch generator seeds."""
    return random.Random(int(torch.randint(2**62, (), generator=generator)))
