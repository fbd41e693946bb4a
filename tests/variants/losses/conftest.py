"""What a loss sees, made by hand."""

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.loss import LossInputs
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace


@pytest.fixture
def seen():
    """`seen(weights B H T S, tokens=.., lengths=.., mask=.., states=.., progress=.., terms=..)`.

    `lengths` pads sources on the right; `states` are the values of the keys, `B S E`.
    """

    def make(
        weights,
        *,
        tokens=None,
        lengths=None,
        mask=None,
        states=None,
        progress=0.5,
        gold=None,
        terms=None,
    ):
        rows, _, steps, keys = weights.shape
        mask = torch.ones(rows, steps, dtype=torch.bool) if mask is None else torch.tensor(mask)
        words = torch.full((rows, keys), 5) if tokens is None else torch.tensor(tokens)
        real = None if lengths is None else torch.arange(keys) < torch.tensor(lengths)[:, None]
        states = weights.new_zeros(rows, keys, 2) if states is None else states
        memory = Memory(Source(states[:, None], states[:, None], real, words))
        blank = weights.new_zeros(rows, steps, 1)
        attended = Attended(blank[:, None], weights, State(), terms or {})
        trace = Trace(blank, blank, blank, (attended,), (memory,))
        targets = torch.full((rows, steps), 5)
        batch = Batch((Text(words, real),), targets, targets, mask, extended=words, gold=gold)
        return LossInputs(trace, weights.new_zeros(rows, steps), batch, progress)

    return make


@pytest.fixture
def golden_weights():
    """Weights of three steps; their sums over steps, the coverage, are 1.4, 0.6 and 1.0."""
    rows = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]
    return torch.tensor([[rows]], dtype=torch.float64)


@pytest.fixture
def drawn_weights():
    """`drawn_weights(rows, steps, keys, lengths)` -> rows of a softmax over real keys."""

    def make(rows=3, steps=5, keys=4, lengths=None, heads=1, seed=0):
        rng = torch.Generator().manual_seed(seed)
        energy = torch.randn(rows, heads, steps, keys, generator=rng, dtype=torch.float64)
        lengths = [keys] * rows if lengths is None else lengths
        real = torch.arange(keys) < torch.tensor(lengths)[:, None]
        return torch.softmax(2 * energy.masked_fill(~real[:, None, None], -1e9), -1)

    return make
