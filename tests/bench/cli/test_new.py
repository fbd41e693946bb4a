"""`bench new`: what it writes is certified as it stands, and a wrong name writes nothing."""

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.api import registry
from bench.api.axes import AXES
from bench.api.loading import load_package, load_plugin
from bench.cli import new
from bench.cli.main import cli
from bench.conformance import certify
from bench.conformance.checks_structure import PLACEHOLDER

ROOT = Path(__file__).parents[3]


def ask(*words):
    done = CliRunner().invoke(cli, ["new", *map(str, words)])
    return done, str(done.exception) if done.exception else done.output


def test_a_plug_in_is_written_with_its_test_loads_and_is_certified(tmp_path, fresh_registry):
    done, said = ask("variant", "brand_new", "--axis", "score", "--out", tmp_path / "mine")
    assert done.exit_code == 0, said
    files = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert files == ["brand_new.py", "test_brand_new.py"]
    assert f"bench verify brand_new --plugin {tmp_path / 'mine' / 'brand_new.py'}" in said
    assert "--preset smoke --no-speed --plugin" in said  # timing waits for other runs
    load_plugin(tmp_path / "mine" / "brand_new.py")
    assert certify("brand_new", checks=["runs_somewhere", "oracle", "splits"]).green()


def test_a_title_of_a_template_is_noted(tmp_path, fresh_registry):
    ask("variant", "brand_new", "--axis", "score", "--out", tmp_path)
    load_plugin(tmp_path / "brand_new.py")
    found = certify("brand_new", checks=["config"])
    assert found.green()
    assert "still has the title 'The name that tables print'" in found.told["config"]


def test_nothing_that_is_registered_has_the_title_or_a_sentence_of_a_template():
    load_package("variants")
    load_package("tasks")
    paths = [path for path in new.TEMPLATES.glob("*.py") if path.stem != "__init__"]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert all(PLACEHOLDER in text for text in texts)
    pages = [ast.get_docstring(ast.parse(text)).splitlines() for text in texts]
    begins = {line.partition(";")[0] for line, *_ in pages}
    places = {line for page in pages for line in page if "stand here" in line}
    assert all(begin.startswith("Say in one sentence ") for begin in begins)
    assert places
    entries = [one for axis in AXES for one in registry.registrations(axis).values()]
    wrong = [
        f"{one.name}: {sentence}"
        for one in entries
        for sentence in (*begins, *places, PLACEHOLDER)
        if one.title == sentence or sentence in one.title_page()
    ]
    assert not wrong, "write what stands there in your own words:\n" + "\n".join(wrong)


@pytest.mark.parametrize("axis", new.FOLDERS)
def test_what_is_written_starts_with_weight_on_several_keys(axis, tmp_path, fresh_registry):
    ask("variant", "brand_new", "--axis", axis, "--out", tmp_path)
    load_plugin(tmp_path / "brand_new.py")
    assert certify("brand_new", checks=["runs_somewhere", "start_entropy"]).green()


def test_a_file_goes_where_its_axis_lives_and_its_test_data_directories_it():
    for axis, folder in new.FOLDERS.items():
        made = new.variant_scaffold("brand_new", axis)
        assert made.module == ROOT / "variants" / folder / "brand_new.py"
        assert made.test == ROOT / "tests" / "variants" / folder / "test_brand_new.py"
        assert (ROOT / "variants" / folder / "__init__.py").is_file(), folder
    made = new.task_scaffold("brand_new", "reading")
    assert made.module == ROOT / "tasks" / "reading" / "brand_new.py"
    assert made.test == ROOT / "tests" / "tasks" / "reading" / "test_brand_new.py"
    assert 'family = "reading"' in made.texts[0]
    assert "--no-speed" in made.next_commands[-1]


def test_printed_commands_can_be_pasted_from_a_folder_with_a_space(tmp_path):
    made = (
        new.variant_scaffold("brand_new", "score", tmp_path / "my plug-ins"),
        new.task_scaffold("brand_new", "reading", tmp_path / "my plug-ins"),
    )
    for command in (one for scaffold in made for one in scaffold.next_commands):
        assert [word for word in shlex.split(command) if " " in word] != [], command


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("variant", "dot", "--axis", "score"), "'dot' is already a score"),
        (("variant", "recall", "--axis", "mask"), "'recall' is already a task"),
        (("task", "recall"), "'recall' is already a task"),
        (("variant", "My-Score", "--axis", "score"), "lower-case letters"),
        (("variant", "class", "--axis", "score"), "'class' is a word of Python"),
        (("variant", "1abc", "--axis", "score"), "must begin with a letter"),
        (("task", "_abc"), "must begin with a letter"),
        (("variant", "torch", "--axis", "score"), "'torch' is a module of Python"),
        (("task", "statistics"), "'statistics' is a module of Python"),
        (("task", "results"), "'results' is a module of Python"),
        (("variant", "../escape", "--axis", "score"), "lower-case letters"),
        (("variant", "mask", "--axis", "score"), "a word of the selectors"),
        (("task", "a" * 29), "at most 28"),
        (("variant", "brand_new", "--axis", "scores"), "did you mean 'score'"),
        (("task", "brand_new", "--use", "diagnostic"), "did you mean 'diagnostics'"),
    ],
)
def test_a_wrong_name_is_refused_in_a_sentence_and_writes_nothing(words, reason, tmp_path):
    done, said = ask(*words, "--out", tmp_path / "mine")
    assert done.exit_code != 0
    assert reason in said
    assert said.endswith(".")
    assert "\n" not in said
    assert not (tmp_path / "mine").exists()


def test_a_file_that_is_there_is_never_overwritten_nor_joined_by_half(tmp_path):
    (tmp_path / "test_brand_new.py").write_text("mine")
    done, said = ask("task", "brand_new", "--out", tmp_path)
    assert done.exit_code != 0
    assert "test_brand_new.py exists already" in said
    assert [path.name for path in tmp_path.iterdir()] == ["test_brand_new.py"]
    assert (tmp_path / "test_brand_new.py").read_text() == "mine"


@pytest.mark.parametrize("words", [("variant", "my_score", "--axis", "score"), ("task", "my_task")])
def test_the_same_command_twice_says_that_the_file_exists(
    words, tmp_path, monkeypatch, fresh_registry
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as `python -m bench` finds modules beside it
    assert ask(*words, "--out", ".")[0].exit_code == 0
    done, said = ask(*words, "--out", ".")
    assert done.exit_code != 0
    assert said == f"{words[1]}.py exists already; choose another name."


def test_a_test_that_cannot_be_written_takes_its_module_away_again(tmp_path, monkeypatch):
    write = Path.write_text

    def fail(path, *words, **options):
        if path.name.startswith("test_"):
            raise OSError(28, "No space left on device", str(path))
        return write(path, *words, **options)

    monkeypatch.setattr(Path, "write_text", fail)
    _, said = ask("variant", "brand_new", "--axis", "loss", "--out", tmp_path)
    assert "No space left on device" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["ab", "a_name_of_twenty_eight_marks"])
def test_short_and_long_names_leave_code_that_ruff_accepts(name):
    assert len(name) in (2, new.LONGEST)
    scaffolds = [new.variant_scaffold(name, axis) for axis in new.FOLDERS]
    for made in (*scaffolds, new.task_scaffold(name)):
        for path, text in zip((made.module, made.test), made.texts, strict=True):
            for command in (["format", "--check"], ["check"]):
                done = subprocess.run(
                    [sys.executable, "-m", "ruff", *command, "--stdin-filename", path, "-"],
                    input=text,
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_scaffold_passes_its_tests_is_certified_and_trains(tree, monkeypatch):
    monkeypatch.setattr(new, "ROOT", tree.root)
    names = {axis: f"brand_new_{axis}" for axis in new.FOLDERS}
    for axis, name in names.items():
        new.variant_scaffold(name, axis).write()
    new.task_scaffold("brand_new_task").write()
    written = [path.relative_to(tree.root) for path in tree.root.rglob("test_brand_new_*.py")]
    assert len(written) == len(names) + 1
    tree.python("-m", "pytest", "-q", *written)
    tree.python("-m", "pytest", "-q", "tests/tasks/test_every_task.py", "-k", "brand_new_task")
    tree.bench("verify", *names.values())
    variants = ",".join(names.values())
    tree.bench("run", "--variants", variants, "--preset", "smoke", "--no-speed", "--no-verify")
    tree.bench("run", "--variants", "additive", "--tasks", "brand_new_task", "--preset", "smoke")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [("task",), ("variant", "--axis", "history")])
def test_the_test_of_a_plug_in_passes_where_it_was_written(kind, tree, tmp_path):
    word, *options = kind
    tree.bench("new", word, "brand_new", *options, "--out", tmp_path / "mine")
    assert "passed" in tree.python("-m", "pytest", "-q", tmp_path / "mine")
