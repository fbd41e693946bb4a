"""How a source enters a network: words by a table, frames by a linear map."""

from jaxtyping import Float
from torch import Tensor, nn

from bench.api.batch import Batch, Sizes, Text


def source_table(sizes: Sizes, source: int, width: int) -> nn.Module:
    """The module of `embed_source`: a table of words, or a map of frames to the same width."""
    frames = sizes.frames_of(source)
    if frames:
        return nn.Linear(frames, width)
    return nn.Embedding(sizes.source_vocabs[source], width, padding_idx=0)


def embed_source(table: nn.Module, text: Text) -> Float[Tensor, "B S De"]:
    """Vectors of the positions of a source."""
    embedded: Tensor = table(text.tokens if text.frames is None else text.frames)
    return embedded


def input_frames(sizes: Sizes, width: int) -> nn.Linear | None:
    """The map for frames beside decoder inputs; None where there are none."""
    return nn.Linear(sizes.input_frames, width) if sizes.input_frames else None


def with_frames(
    embedded: Float[Tensor, "B T De"], table: nn.Linear | None, batch: Batch
) -> Float[Tensor, "B T De"]:
    """Embedded decoder inputs and what comes beside them, added."""
    if table is None or batch.frames is None:
        return embedded
    return embedded + table(batch.frames)
