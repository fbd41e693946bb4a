"""Components stand alone: none imports another, so that each can be read by itself."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "variants"
KNOWN = {
    ("variants.mechanisms.ntm_memory", "variants.normalizers.ntm_addressing"): (
        "both address by the same equations of one paper, which are written in its normalizer alone"
    ),
}
"""Components that import another one, that one, and why."""


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


def imported(tree: ast.Module) -> set[str]:
    """Modules that a file imports, and names from them, which may be modules as well."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not read here"
            found |= {str(node.module), *(f"{node.module}.{one.name}" for one in node.names)}
    return found


EVERY = {name: tree for axis in AXES for name, tree in components(axis).items()}


def test_no_component_imports_another():
    pairs = {
        (name, other)
        for name, tree in EVERY.items()
        for other in (imported(tree) & {*EVERY}) - {name}
    }
    assert pairs == {*KNOWN}


@pytest.mark.parametrize(
    "line",
    [
        "import variants.scores.dot",
        "import variants.scores.dot as other",
        "from variants.scores import dot",
        "from variants.scores.dot import DotScore",
    ],
)
def test_every_form_of_an_import_is_seen(line):
    assert "variants.scores.dot" in imported(ast.parse(line)) & {*EVERY}
