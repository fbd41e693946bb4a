import pytest
import torch

from bench.api.source import Source


@pytest.fixture
def aligned(component, ask):
    """`aligned(selector, energy, allowed, ...)` -> weights of one normalizer on given energies."""

    def make(selector, energy, allowed=None, **options):
        rows, heads, length, keys = energy.shape
        normalizer = component("normalizer", selector, heads=heads, seed=None)
        blank = torch.zeros(rows, heads, keys, 1, dtype=energy.dtype)
        call = ask(blank.new_zeros(rows, heads, length, 1), Source(blank, blank), **options)
        return normalizer.normalize(energy, allowed, {}, call).weights

    return make


@pytest.fixture
def row(aligned):
    """`row(selector, numbers, allowed, dtype)` -> weights of one row, as a list."""

    def make(selector, numbers, allowed=None, dtype=torch.float64, **options):
        energy = torch.tensor(numbers, dtype=dtype).view(1, 1, 1, -1)
        if allowed is not None:
            allowed = torch.tensor(allowed).view(1, 1, 1, -1)
        return aligned(selector, energy, allowed, **options).flatten().tolist()

    return make


@pytest.fixture
def energies():
    """`energies(*shape)` -> standard normal draws in float64 that want gradients."""

    def make(*shape, seed=0):
        rng = torch.Generator().manual_seed(seed)
        return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()

    return make
