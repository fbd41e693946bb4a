"""Components stand alone: none imports another of its axis, so that each can be read by itself."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "variants"


def registers(tree: ast.Module) -> bool:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id == "register" for called in calls)


def components(axis: Path) -> dict[str, ast.Module]:
    trees = {
        ".".join(("variants", axis.name, file.stem)): ast.parse(file.read_text(encoding="utf-8"))
        for file in axis.glob("*.py")
    }
    return {name: tree for name, tree in trees.items() if registers(tree)}


AXES = [axis for axis in sorted(FOLDER.iterdir()) if axis.is_dir() and components(axis)]


def test_the_axes_are_found():
    assert {"scores", "normalizers", "mechanisms", "heads"} <= {axis.name for axis in AXES}


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_no_component_imports_another_of_its_axis(axis):
    found = components(axis)
    for name, tree in found.items():
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & (set(found) - {name}), name
