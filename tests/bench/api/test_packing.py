"""Packed sources: a cache keeps fewer numbers, and a call sees keys and values."""

from dataclasses import dataclass

import pytest
import torch

import variants
from bench.api.kept_bytes import state_bytes
from bench.api.packing import Packing
from bench.api.source import Memory, Source, State

variants.load_all()


@dataclass(frozen=True)
class Halves(Packing):
    """A key is its number and twice that; a value is its negative, for two heads alike."""

    def turned(self, packed, turn):
        return turn(packed)

    def written(self, packed):
        heads = packed.expand(-1, 2, -1, -1)
        return torch.cat((heads, 2 * heads), -1), -heads


def source(keys=5, seed=0):
    rng = torch.Generator().manual_seed(seed)
    numbers = torch.randn(3, 1, keys, 3, generator=rng)
    return Source(numbers, numbers, shared=3, packing=Halves())


def part(whole, keys):
    numbers = whole.key[:, :, keys]
    return Memory(Source(numbers, numbers, shared=3, packing=whole.packing))


def test_what_is_written_out_is_packed_no_more():
    packed = source()
    written = packed.written()
    assert written.key.shape == (3, 2, 5, 6)
    assert torch.equal(written.value[:, 0], -packed.key[:, 0])
    assert (written.packing, written.shared) == (None, 0)
    assert written.written() is written


@pytest.mark.parametrize("gradients", [True, False])
def test_caches_grow_forget_and_are_picked_from_while_packed(gradients):
    whole = source()
    with torch.set_grad_enabled(gradients):
        grown = part(whole, slice(0, 2))
        for at in range(2, 5):
            grown = grown.extend(part(whole, slice(at, at + 1)))
    assert torch.equal(grown.source.written().value, whole.written().value)
    assert state_bytes([State(cache=grown)]) == 3 * 5 * 3 * 4
    few = grown.forget(1, 2, 0)
    assert torch.equal(few.source.written().key, whole.written().key[:, :, [0, 3, 4]])
    rows = torch.tensor([2, 0])
    assert torch.equal(few.select(rows).source.written().key, few.source.written().key[rows])


def test_a_call_sees_what_is_written_out_and_knows_what_was_forgotten():
    attention = variants.build("mha", dim=12, heads=2, regime="causal").variant
    packed = part(source(), slice(0, 5)).forget(1, 2, 0)
    query = torch.zeros(3, 2, 2, 6)
    found = attention.opened(packed, query, None, plain=False)
    assert found.source.key.shape == (3, 2, 3, 6)
    assert (found.sinks, found.forgotten) == (1, 2)
    assert attention.opened(found, query, None, plain=False) is found
