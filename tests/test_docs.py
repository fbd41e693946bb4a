"""README is executed, and their lists compared with the registry."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.resolve import resolve
from bench.cli.task_pages import NEEDS_DATA, _made, facts_of, tasks_page
from bench.running.catalog import describe_variant
from bench.running.families import tasks_by_family
from reports.markdown import code_span, escape

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


def test_every_make_target_in_the_readme_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", text):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("kind", ["variant", "task"])
def test_the_tables_of_the_readme_list_what_is_registered(kind):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = registry.listed_variants() if kind == "variant" else registry.registrations("task")
    missing = [name for name in found if f"`{name}`" not in text]
    assert not missing


def _page_of_tasks(text):
    found = re.split(r"^### `(.+)`$", text, flags=re.MULTILINE)[1:]
    return {
        name: [line for line in body.split("\n\n") if line and not line.startswith("## ")]
        for name, body in zip(found[::2], (part.strip() for part in found[1::2]), strict=True)
    }


def _committed_tasks():
    return _page_of_tasks((ROOT / "docs" / "tasks.md").read_text(encoding="utf-8"))


def test_the_page_of_tasks_lists_every_task_once_by_family():
    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    names = re.findall(r"^### `(.+)`$", text, flags=re.MULTILINE)
    assert names == [
        registered.name for entries in tasks_by_family().values() for registered in entries
    ]
    heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert heads == [name[:1].upper() + name[1:] for name in tasks_by_family()]


def test_the_page_of_tasks_says_what_the_code_says():
    committed = _committed_tasks()
    wrong = [
        registered.name
        for entries in tasks_by_family().values()
        for registered in entries
        if [line for line in committed[registered.name] if not line.startswith(NEEDS_DATA)]
        != facts_of(registered)
    ]
    assert not wrong, "run `make tasks-doc`"


@pytest.mark.slow
def test_what_the_page_of_tasks_takes_from_data_is_what_they_hold():
    made = _page_of_tasks(tasks_page(directory()))
    if directory() is not None:
        told = [name for name in made if any(x.startswith(NEEDS_DATA[1]) for x in made[name])]
        assert told == list(made), "each task shows an example"
    committed = _committed_tasks()
    for name, lines in made.items():
        here = [line for line in lines if line.startswith(NEEDS_DATA)]
        if here or directory() is not None:
            assert here == [line for line in committed[name] if line.startswith(NEEDS_DATA)], name


def test_examples_are_shown_of_numbers_and_of_data_that_are_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path))
    shown = {
        name: [line for line in _made(registry.find("task", name), tmp_path) if "Example" in line]
        for name in ("adding", "stsb", "translation")
    }
    assert re.fullmatch(r"\*\*Example\.\*\* `-?0\.\d+, -?0\.\d+` → `0\.\d+`", *shown["adding"])
    assert "a man is playing a guitar ." in shown["stsb"][0]
    assert shown["stsb"][0].endswith(" → `3.8`")
    assert not shown["translation"], "its example is made where its data are"


def directory():
    found = os.environ.get("BENCH_DATA_DIR", "")
    return Path(found) if found else None


def test_only_the_page_of_tasks_is_shown_as_markdown():
    from click.testing import CliRunner

    from bench.cli.main import cli

    done = CliRunner().invoke(cli, ["show", "scaled_dot", "--markdown"])
    assert done.exit_code == 2
    assert "--markdown is for `show tasks`" in done.output


HANDBOOK = ROOT / "docs" / "mechanisms.md"


def _handbook():
    text = HANDBOOK.read_text(encoding="utf-8")
    found = re.split(r"^### `(.+)`$", text, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def test_the_handbook_lists_exactly_the_variants():
    assert sorted(_handbook()) == sorted(registry.listed_variants())


@pytest.mark.parametrize("key", ["title", "formula", "paper", "where", "made_of", "deviations"])
def test_the_handbook_says_what_the_code_says(key):
    entries = _handbook()
    wrong = []
    for name in registry.listed_variants():
        said = getattr(describe_variant(resolve(name), name), key)
        written = code_span(said) if key in ("formula", "made_of") else escape(said)
        if said and written not in entries[name]:
            wrong.append(name)
    assert not wrong, "run quick and `make handbook RUN=quick`"


def test_every_picture_of_the_handbook_is_there_and_used():
    linked = {
        link
        for registered in _handbook().values()
        for link in re.findall(r"\((weights/[^)]+)\)", registered)
    }
    drawn = {f"weights/{path.name}" for path in (HANDBOOK.parent / "weights").iterdir()}
    assert linked == drawn
    assert len(linked) > len(registry.listed_variants()) / 2
