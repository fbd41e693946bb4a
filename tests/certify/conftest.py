"""Planting: components and mechanisms that exist for the length of one test."""

import pytest

from bench.api import registry
from bench.api.config import NoOptions
from bench.api.registry import Entry


@pytest.fixture
def plant(monkeypatch):
    """`plant(axis, name, cls, config=...)` registers a class and forgets it after the test."""

    def add(axis, name, target, config=NoOptions):
        entry = Entry(axis=axis, name=name, target=target, config=config, module="planted")
        monkeypatch.setitem(registry._ENTRIES[axis], name, entry)
        return name

    return add
