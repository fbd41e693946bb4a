"""What plans, trains and describes knows no variant and no task by name."""

import ast
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.axes import AXES

ROOT = Path(__file__).parents[3]
CLOSED_WORDS = {"none", "softmax", "random", "forward"}
"""Names that are words of the contract too: no component, a side of a metric, a timed call."""
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in ("bench/running", "bench/training")
    for path in (ROOT / folder).glob("*.py")
)


def _texts(tree: ast.Module) -> list[str]:
    """Every string of a module that is no docstring."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare
    ]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_that_plans_or_trains_names_nothing_that_is_registered(path):
    names = {name for axis in AXES for name in registry.registrations(axis)}
    tree = ast.parse((ROOT / path).read_text())
    named = {text for text in _texts(tree) if text.partition("[")[0] in names - CLOSED_WORDS}
    assert not named, (
        "declare it on the registered thing: control=, rosters=, shared=, default_task="
    )
