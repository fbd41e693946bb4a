"""What the energies of a position read is what it declares."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import variants
from bench.api.call import Call, Dims
from bench.api.position import Position
from bench.api.registry import make, registrations
from bench.api.selector import parse
from bench.api.source import Memory, Source

variants.load_all()
DIMS = Dims(2, 2, 6, 6, 6, model_width=12, regime="causal", relations=5)
SINGLE_KEY_HEAD = DIMS._replace(kv_heads=1)
OPTIONS = (
    "deberta[content_to_position=false]",
    "deberta[position_to_content=false]",
    "kerple[kernel=power]",
    "relation_aware[use=keys]",
    "shaw_rpr[use=keys]",
)
"""Options that change what is read, or how."""
ADDING = sorted(
    name
    for name, one in registrations("position").items()
    if one.target.energy is not Position.energy
)


def reached(position: Position, dims: Dims) -> set[str]:
    """Which of queries and keys the gradients of the energies reach."""

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, requires_grad=True)

    query = drawn(1, dims.heads, 3, dims.query_width)
    key = drawn(1, dims.kv_heads, 3, dims.key_width)
    beside = {
        name: drawn(1, one.num_heads(dims.kv_heads), 3, one.width)
        for name, one in position.key_inputs.items()
    }
    source = Source(key, drawn(1, dims.kv_heads, 3, dims.value_width), extras=beside)
    source = replace(source, tokens=torch.zeros(1, 3, dtype=torch.long))
    extras = {"relation": torch.zeros(1, 3, 3, dtype=torch.long)}
    memory = Memory(source, {position.branch: position.prepare(source)})
    energy = position.energy(Call(query, memory, 0, causal=True, extras=extras))
    if not energy.requires_grad:
        return set()
    found = torch.autograd.grad(energy.sum(), (query, key), allow_unused=True)
    names = ("queries", "keys")
    return {name for name, gradient in zip(names, found, strict=True) if gradient is not None}


@pytest.mark.parametrize("dims", [DIMS, SINGLE_KEY_HEAD])
@pytest.mark.parametrize("selector", [*ADDING, *OPTIONS])
def test_gradients_of_energies_reach_what_is_declared_and_nothing_else(selector, dims):
    position = make("position", parse(selector), dims)
    assert reached(position, dims) == position.energy_reads
    assert position.changes_energy or not position.energy_reads
