"""README and CONTRIBUTING are executed, and their lists compared with the registry."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.api import registry
from bench.certify import certify

ROOT = Path(__file__).parents[1]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_in_the_readme_runs(tmp_path):
    code = "\n".join(blocks("README.md", "python"))
    assert "variants.build" in code
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_variant_of_the_contributing_guide_gets_a_green_certificate(tmp_path):
    (code,) = blocks("CONTRIBUTING.md", "python")
    path = tmp_path / "sliding_window_guide.py"
    path.write_text(code, encoding="utf-8")
    before = dict(registry.entries("pattern"))
    registry.load_plugin(path)
    try:
        found = certify("sliding_window")
        assert found.green(), (found.failed, found.missing())
        assert "causality" in found.passed
    finally:
        for name in set(registry.entries("pattern")) - set(before):
            registry._ENTRIES["pattern"].pop(name)


def test_every_make_target_in_the_readme_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", text):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("kind", ["variant", "task"])
def test_the_tables_of_the_readme_list_what_is_registered(kind):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = registry.variant_entries() if kind == "variant" else registry.entries("task")
    missing = [name for name in found if f"`{name}`" not in text]
    assert not missing
