import pytest
import torch

from bench.api.variant import Variant
from bench.conformance.checks_cost import Meter, exponent


@pytest.fixture
def places(beneath, answer, draw):
    """`places(selector, keys, regime, heads)` -> keys with weight, by head and query."""

    def make(selector, keys=8, regime="causal", heads=1, lengths=()):
        drawn = draw(1 if not lengths else len(lengths), heads, keys, keys, lengths=lengths)
        found = answer(beneath(selector, heads=heads, regime=regime), drawn.query, drawn.source)
        return [
            [[row.nonzero().flatten().tolist() for row in head] for head in one]
            for one in found.weights
        ]

    return make


@pytest.fixture
def always_gather(monkeypatch):
    """Copy windows out of short sequences, too."""
    monkeypatch.setattr(Variant, "gather_from", 0)


@pytest.fixture
def equals_full(beneath, answer, draw):
    """`equals_full(selector, keys)`: outputs and weights are those of full attention."""

    def check(selector, keys=6, regime="causal"):
        drawn = draw(queries=keys, keys=keys)
        found, wanted = (
            answer(beneath(name, regime=regime), drawn.query, drawn.source)
            for name in (selector, "scaled_dot")
        )
        torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)
        torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)

    return check


@pytest.fixture
def growth(beneath, answer, draw):
    """`growth(selector)` -> powers of the length with which work and bytes grow."""

    def measure(selector, impl="auto", lengths=(128, 256, 512)):
        work, peak = [], []
        for length in lengths:
            drawn = draw(1, 2, length, length, lengths=())
            variant = beneath(selector, regime="causal", impl=impl)
            with torch.no_grad(), Meter() as meter:
                answer(variant, drawn.query, drawn.source, want_weights=False)
            work.append(meter.operations)
            peak.append(meter.peak)
        return exponent(work), exponent(peak)

    return measure
