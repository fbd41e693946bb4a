"""Sizes of a timed attention: those of the shape, and of heads that share their keys.

Attention is timed beneath its heads, on the heads and the width of the shape. Heads that keep fewer
keys than queries change what stands beneath them, and so do heads of which positions turn only a
part, so they are built for the shape and asked.
"""

import torch

from bench.api import registry
from bench.api.call import Dims
from bench.api.errors import InvalidConfig, Refused
from bench.api.heads import HEADS
from bench.api.plain_text import message_of
from bench.api.resolve import VariantSpec
from bench.timing.fitted_heads import with_heads
from bench.timing.shape import AttendShape


def timed_dims(spec: VariantSpec, shape: AttendShape) -> Dims:
    """Sizes that a variant is built with under a shape.

    Options `heads` and `kv_heads` of the heads are scaled to the heads of the shape, so that two
    query heads of `gqa[heads=4,kv_heads=2]` share one key head.

    Raises:
        Refused: The heads cannot be built for this shape, such as one head with two roles.
    """
    usual = shape.dims
    chosen = spec.axes["head"][0]
    if chosen.name == "auto":
        return usual
    fitted = with_heads(chosen, shape.heads)
    width = usual.model_width
    with torch.random.fork_rng(devices=()):  # the caller's random state stays as it is
        try:
            made = registry.make(HEADS, fitted, width, width, shape.regime).dims
        except InvalidConfig as error:
            raise Refused(f"its heads cannot have this shape: {message_of(error)}") from error
    if made.kv_heads == made.heads and not made.turned_width:
        return usual
    return made._replace(source_vocab=usual.source_vocab, word_width=usual.word_width)
