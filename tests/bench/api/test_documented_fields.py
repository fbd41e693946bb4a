"""What the source says of fields: under each, in order, from base classes too."""

from dataclasses import dataclass

import pytest

from bench.api import registry
from bench.api.documented_fields import documented_fields
from bench.api.loading import load_package
from bench.training.protocol import AdamProtocol

load_package("variants")
load_package("tasks")


@dataclass(frozen=True, kw_only=True)
class Base:
    first: int = 1
    """What comes
    first."""
    silent: int = 2

    def between(self) -> int:
        """No field."""
        return self.first


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    """The class, and no field."""

    second: int = 3
    """What comes second."""
    first: int = 4


def test_each_field_has_the_text_under_it_with_its_lines_joined():
    assert documented_fields(Base) == {"first": "What comes first.", "silent": ""}


def test_fields_of_base_classes_keep_their_text():
    found = documented_fields(Derived)
    assert list(found) == ["first", "silent", "second"]
    assert found["first"] == "What comes first."
    assert found["second"] == "What comes second."


def test_a_class_without_a_source_has_no_text():
    made = dataclass(type("Made", (), {"__annotations__": {"width": int}, "width": 3}))
    assert documented_fields(made) == {"width": ""}


@pytest.mark.parametrize("axis", ["task", "score", "mask", "normalizer", "mechanism", "head"])
def test_every_option_of_the_bench_says_what_it_means(axis):
    for registered in registry.registrations(axis).values():
        silent = [name for name, said in documented_fields(registered.config).items() if not said]
        assert not silent, registered.name
    assert all(documented_fields(AdamProtocol).values())
