"""Examples in docstrings run and print what they say; tests/tasks has those of tasks."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEMPLATES = Path("bench/cli/templates")
"""Of `bench new`; their examples hold once the names are filled in."""


def _modules():
    """Modules that have an example."""
    for package in ("bench", "reports", "results", "variants"):
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT)
            if TEMPLATES not in file.parents and ">>> " in path.read_text(encoding="utf-8"):
                yield ".".join(file.with_suffix("").parts)


MODULES = list(_modules())


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_each_package_shows_examples():
    assert {name.partition(".")[0] for name in MODULES} == {
        "bench",
        "reports",
        "results",
        "variants",
    }
    assert len(MODULES) >= 60
