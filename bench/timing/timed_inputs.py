"""Random inputs that all timed variants of a block share, fitted to the sizes of each."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bench.api.call import Dims
from bench.api.inputs import SlotInput
from bench.api.source import Source
from bench.api.variant import Variant
from bench.timing.shape import SOURCE_VOCAB, AttendShape


@dataclass(frozen=True)
class Inputs:
    """Tensors shared by all timed variants of a block."""

    query: Tensor
    """B H L E."""
    source: Source
    """Keys and values `B H S E`, all of them real."""
    next_query: Tensor
    """B H 1 E, the query of a decode step."""
    next_source: Source
    """The key that arrives with it under causal self-attention."""
    gradient: Tensor
    """B H L E, of the loss with respect to the output."""
    seed: int


def draw_inputs(
    shape: AttendShape,
    device: torch.device,
    dtype: torch.dtype,
    seed: int,
    *,
    same_everywhere: bool = True,
) -> Inputs:
    """Draw N(0, 1) inputs; zeros would flatter hardware that saves power on them.

    Args:
        shape: How many.
        device: Where they are used.
        dtype: Their format.
        seed: Of the draw.
        same_everywhere: Whether every device gets the same numbers, which are then drawn on the
            processor; a billion of them take it longer than the attention that is asked.
    """
    home = torch.device("cpu") if same_everywhere else device
    generator = torch.Generator(home).manual_seed(seed)
    drawn = torch.float32 if same_everywhere else dtype

    def normal(length: int) -> Tensor:
        rows, heads, width = shape.drawn
        size = (rows, heads, length, width)
        return torch.randn(size, generator=generator, device=home, dtype=drawn).to(device, dtype)

    def source(length: int) -> Source:
        size = (shape.batch, length)
        ids = torch.randint(SOURCE_VOCAB, size, generator=generator, device=home)
        return Source(key=normal(length), value=normal(length), tokens=ids.to(device))

    queries, keys = shape.queries, shape.length
    return Inputs(normal(queries), source(keys), normal(1), source(1), normal(queries), seed)


def fit_inputs(inputs: Inputs, dims: Dims) -> Inputs:
    """The same tensors for a variant of other sizes: fewer key heads, other widths."""
    query, key = (dims.heads, dims.query_width), (dims.kv_heads, dims.key_width)
    value = (dims.num_value_heads, dims.value_width)
    found = (inputs.query, inputs.source.key, inputs.source.value)
    if [(x.shape[1], x.shape[3]) for x in found] == [query, key, value]:
        return inputs

    def fitted(x: Tensor, size: tuple[int, int]) -> Tensor:
        heads, width = size
        return _first(x[:, :heads], width).contiguous()

    def source(given: Source) -> Source:
        return replace(given, key=fitted(given.key, key), value=fitted(given.value, value))

    return replace(
        inputs,
        query=fitted(inputs.query, query),
        source=source(inputs.source),
        next_query=fitted(inputs.next_query, query),
        next_source=source(inputs.next_source),
        gradient=fitted(inputs.gradient, (dims.heads, dims.value_width)),
    )


def with_inputs(variant: Variant, source: Source) -> Source:
    """The source with numbers beside its keys, where the variant wants some and there are none.

    Keys stand for them: they are N(0, 1), too, and drawing would be part of what is timed.
    """
    if not variant.key_inputs or source.extras:
        return source
    found = {name: _stand_in(source.key, one) for name, one in variant.key_inputs.items()}
    return replace(source, extras=found)


def query_extras(variant: Variant, query: Tensor) -> dict[str, Tensor]:
    """The first head's queries stand for the words that come with them, queries for inputs."""
    found = {
        name: _stand_in(query, one).transpose(1, 2) for name, one in variant.query_inputs.items()
    }
    return {"word": query[:, 0], **found}


def _stand_in(x: Tensor, wanted: SlotInput) -> Tensor:
    """Numbers of the heads that an input has."""
    return _first(x[:, : wanted.num_heads(x.shape[1])], wanted.width)


def _first(x: Tensor, width: int) -> Tensor:
    """The first numbers of every vector, repeated where it has fewer."""
    times = -(-width // x.shape[-1])
    return x.repeat(1, 1, 1, times)[..., :width] if times > 1 else x[..., :width]
