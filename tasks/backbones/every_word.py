"""Encoders of networks that read every word of a text by a state of its own."""

from bench.api import registry
from bench.api.encoder import ENCODERS, Encoder
from bench.api.errors import Refused
from bench.api.selector import Selector


def encoder_of_every_word(backbone: str, chosen: Selector, width: int, hidden: int) -> Encoder:
    """Build an encoder for a network that has its own mask of words.

    Args:
        backbone: Name of the network, for sentences.
        chosen: The encoder.
        width: Width of embedded words.
        hidden: Width of states.

    Raises:
        Refused: Its states are not those of all words.
    """
    encoder = registry.make(ENCODERS, chosen, width, hidden)
    if encoder.stride != 1:
        raise Refused(
            f"{backbone} reads a state of every word, and {chosen.name} has one for "
            f"{encoder.stride} words; name another encoder."
        )
    if "selection" in encoder.gives:
        raise Refused(
            f"{backbone} reads every word, and {chosen.name} selects some; name another encoder."
        )
    return encoder
