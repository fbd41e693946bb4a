"""Parts of the suite, as CI runs one of the slow tests: each test and variant is in one of them."""

import argparse
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.api import registry
from tests import conftest
from tests.parts import read_part, variants_of


def _of_part(nodeids, part):
    left_out = []

    def deselected(*, items):
        left_out.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    config = SimpleNamespace(getoption=lambda option: part, hook=hook)
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]
    chosen = list(items)
    conftest.pytest_collection_modifyitems(config, chosen)
    assert [item for item in items if item not in left_out] == chosen
    return [item.nodeid for item in chosen]


def test_every_test_is_in_one_part_whatever_else_is_chosen():
    nodeids = [f"tests/test_a.py::test_b[{at}]" for at in range(400)]
    parts = [_of_part(nodeids, (part, 10)) for part in range(1, 11)]
    assert sorted(nodeid for part in parts for nodeid in part) == sorted(nodeids)
    assert all(20 <= len(part) <= 60 for part in parts)
    assert _of_part(nodeids[::2], (3, 10)) == [one for one in nodeids[::2] if one in parts[2]]
    assert _of_part(nodeids, None) == nodeids


@pytest.mark.parametrize("asked", ["", "3", "0/8", "9/8", "a/8", "-1/8"])
def test_what_is_no_part_is_refused(asked):
    with pytest.raises(argparse.ArgumentTypeError, match="write K/N"):
        read_part(asked)


def test_every_variant_is_in_one_part_of_the_smoke_run():
    parts = [variants_of((part, 10)).split(",") for part in range(1, 11)]
    assert sorted(name for part in parts for name in part) == sorted(registry.listed_variants())
    assert variants_of((1, 1)) == "all"


def test_annotations_are_checked_wherever_tests_ask_for_it():
    root = Path(__file__).parents[1]
    (asked,) = re.findall("^ANNOTATIONS = (.*)", (root / "Makefile").read_text(), re.MULTILINE)
    marked = [
        path.relative_to(root)
        for path in (root / "tests").rglob("test_*.py")
        if path != Path(__file__) and "mark.annotations" in path.read_text(encoding="utf-8")
    ]
    assert marked
    for path in marked:
        assert any(path.is_relative_to(place) for place in asked.split()), path
