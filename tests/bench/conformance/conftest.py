"""Planting: components and mechanisms that exist for the length of one test."""

import pytest

from bench.api import registry
from bench.api.config import NoOptions
from bench.api.registry import Registration
from bench.conformance import certify
from variants.normalizers.softmax import SoftmaxConfig, SoftmaxNormalizer
from variants.scores.scaled_dot import ScaledDotScore


class Plant:
    """`plant(axis, cls, config)` registers a class as `planted` and forgets it after the test."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def __call__(self, axis, target, config=NoOptions):
        registered = Registration(
            axis=axis, name="planted", target=target, config=config, module="planted"
        )
        self.monkeypatch.setitem(registry._ENTRIES[axis], "planted", registered)

    def normalizer(self, normalize, **attributes):
        """Plant a softmax whose vectorized code is replaced, and its loops are not."""
        planted = type("Planted", (SoftmaxNormalizer,), {"normalize": normalize, **attributes})
        self("normalizer", planted, SoftmaxConfig)

    def score(self, energy):
        """Plant a dot product whose vectorized code is replaced, and its loops are not."""
        parts = {
            "energy": energy,
            "dot_form": lambda self, call: None,
            "gives": frozenset({"key_local"}),
        }
        self("score", type("Planted", (ScaledDotScore,), parts))

    def red(self, selector, *checks):
        """Certify, and return what failed."""
        found = certify(selector, checks=checks or None)
        assert not found.green(), "the defect was not found"
        return found.failed


@pytest.fixture
def plant(monkeypatch):
    return Plant(monkeypatch)
