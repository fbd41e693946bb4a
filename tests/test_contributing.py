"""The walk-throughs of CONTRIBUTING.md are executed, in order, in a copy of the project."""

import re
import shlex
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs" / "examples"
WALKS = ("score", "task", "probe and its metric", "column to the ranked table", "axis")


def blocks(title: str) -> list[tuple[str, str]]:
    """Kind and content of every fenced block of a section, in order."""
    head = next(line for line in TEXT.splitlines() if re.fullmatch(rf"## Add an? {title}", line))
    section = TEXT.partition(f"\n{head}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```(.+?)\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)


def follow(tree, kind: str, text: str) -> None:
    """Do what a block says: save a file, apply a change, or run commands."""
    if kind == "sh":
        for line in text.splitlines():
            words = shlex.split(line)
            tree.run(*([sys.executable, *words[1:]] if words[0] == "python" else words))
    elif kind == "diff":
        (tree.root / "block.patch").write_text(text, encoding="utf-8")
        tree.run("git", "apply", "-C1", "block.patch")
    else:
        path = tree.root / kind.removeprefix("python ")
        assert not path.exists()
        path.write_text(text, encoding="utf-8")


def test_the_five_walk_throughs_are_all_that_the_guide_adds():
    assert re.findall(r"^## Add an? (.+)$", TEXT, flags=re.MULTILINE) == list(WALKS)
    assert all(any(kind == "sh" for kind, _ in blocks(title)) for title in WALKS)


@pytest.mark.parametrize("name", [path.name for path in EXAMPLES.glob("*.patch")])
def test_a_patch_of_the_guide_still_applies(tree, name):
    tree.run("git", "apply", "--check", "-C1", f"docs/examples/{name}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_walk_throughs_work_one_after_the_other(tree):
    # one copy for all: what a reader added before must not be in the way of what comes next
    for title in WALKS:
        begun = time.perf_counter()
        for kind, text in blocks(title):
            follow(tree, kind, text)
        print(f"{title}: {time.perf_counter() - begun:.0f} s")
