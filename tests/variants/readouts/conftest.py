import pytest
import torch

from bench.api.source import Memory


@pytest.fixture
def read(component, ask):
    """`read(selector, weights, source, allowed, query, ...)` -> what one readout reads."""

    def make(selector, weights, source, allowed=None, query=None, *, seed=None, **options):
        heads, width = weights.shape[1], source.value.shape[-1]
        widths = (width, source.key.shape[-1], width)
        part = component("readout", selector, heads=heads, widths=widths, seed=seed)
        if query is None:
            query = torch.zeros(*weights.shape[:3], width, dtype=weights.dtype)
        call = ask(query, source, parts={"readout": part.prepare(source)}, **options)
        assert isinstance(call.memory, Memory)
        return part.read(call, weights, allowed)

    return make


@pytest.fixture
def weigh():
    """`weigh(rows, heads, queries, keys)` -> rows of a simplex in float64 that want gradients."""

    def make(*shape, seed=0):
        rng = torch.Generator().manual_seed(seed)
        drawn = torch.randn(*shape, generator=rng, dtype=torch.float64)
        return torch.softmax(2 * drawn, -1).requires_grad_()

    return make
