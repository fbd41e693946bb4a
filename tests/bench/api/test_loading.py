"""Discovery: packages are imported once, and a plug-in that does not import is one sentence."""

import os
import random
import sys

import pytest
import torch

from bench.api import loading
from bench.api.axes import AXES
from bench.api.errors import BenchError
from bench.api.loading import load_package, load_plugin
from bench.api.registry import find, listed_variants, registrations


@pytest.fixture(autouse=True)
def _isolated(fresh_registry):
    pass


def test_loading_a_package_again_changes_nothing():
    before = {axis: registrations(axis) for axis in AXES}
    load_package("variants")
    loading._LOADED.discard("variants")
    load_package("variants")
    for axis in AXES:
        assert before[axis].items() <= registrations(axis).items()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("import nowhere_at_all", r"ModuleNotFoundError: .* \(broken\.py:1\); mend the file"),
        ("def broken(:", "failed to import: SyntaxError"),
        ("1 / 0", "failed to import: ZeroDivisionError"),
        (
            "from bench.api.registry import register\nregister('score', 'dot')(type('D', (), {}))",
            "already registered by variants.scores.dot; choose another name",
        ),
        (
            "from bench.api.score import Score\n"
            "class Bad(Score):\n    needs = frozenset({'wings'})",
            "wings",
        ),
    ],
)
def test_a_plug_in_that_does_not_import_is_one_sentence(tmp_path, content, complaint):
    path = tmp_path / "broken.py"
    path.write_text(content)
    with pytest.raises(BenchError, match=complaint) as error:
        load_plugin(path)
    assert "\n" not in str(error.value)
    assert "bench_plugin_broken" not in sys.modules


def test_the_last_line_of_a_plug_in_that_an_error_left_is_named(tmp_path):
    path = tmp_path / "raises.py"
    path.write_text("import json\n\ndef read(text):\n    return json.loads(text)\n\nread('\\n}')\n")
    with pytest.raises(BenchError, match=r"JSONDecodeError: .* \(raises\.py:4\); mend the file"):
        load_plugin(path)


def test_the_path_of_a_plug_in_may_be_a_string(window_plugin):
    load_plugin(str(window_plugin))
    assert "sliding" in listed_variants()


def test_a_plug_in_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(BenchError, match=r"no plug-in file .*give the path"):
        load_plugin(tmp_path / "nothing.py")


def test_a_plug_in_is_loaded_once_and_listed(window_plugin):
    load_plugin(window_plugin)
    target = find("mask", "sliding").target
    load_plugin(window_plugin)
    assert find("mask", "sliding").target is target
    assert "sliding" in listed_variants()


def test_two_plug_ins_of_one_name_are_distinguished(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text("")
    load_plugin(tmp_path / "one" / "mine.py")
    with pytest.raises(BenchError, match="rename one of the plug-ins"):
        load_plugin(tmp_path / "two" / "mine.py")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("import sys\nsys.exit(0)", r"import: SystemExit: 0 \(wild\.py:2\); mend the file"),
        ("class Odd(BaseException): pass\nraise Odd", r"failed to import: Odd \(wild"),
        ("raise ValueError('\\ud800')", "failed to import: ValueError.*mend the file"),
        ("raise ValueError('x' * 5_000_000)", r"\(5000000 characters\).*mend the file"),
        ("import torch\ntorch.set_num_threads(2)", "changes torch's number of threads from 1 to 2"),
        (
            "import torch\ntorch.set_default_dtype(torch.float64)",
            "changes the default dtype from torch.float32 to torch.float64 when it is imported",
        ),
        (
            "import torch.nn.functional as F\nF.softmax = F.log_softmax",
            r"changes the code of torch\.nn\.functional\.softmax",
        ),
        ("import os\nos.chdir('/')", "changes the current folder"),
    ],
)
def test_a_plug_in_that_would_end_or_change_everything_is_one_sentence(
    tmp_path, content, complaint
):
    path = tmp_path / "wild.py"
    path.write_text(content)
    with pytest.raises(BenchError, match=complaint) as error:
        load_plugin(path)
    str(error.value).encode()
    assert len(str(error.value)) < 1500
    assert torch.get_num_threads() == 1
    assert torch.get_default_dtype() == torch.float32
    assert "bench_plugin_wild" not in sys.modules


def test_what_libraries_change_when_they_are_imported_is_put_back_in_silence(tmp_path):
    path = tmp_path / "usual.py"
    path.write_text("import os, random\nrandom.seed(1)\nos.environ['OMP_NUM_THREADS'] = '9'\n")
    before = random.getstate()
    load_plugin(path)
    assert random.getstate() == before
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_what_a_plug_in_prints_goes_to_standard_error(tmp_path, capfd):
    path = tmp_path / "loud.py"
    path.write_text("import os\nprint('spoken')\nos.write(1, b'written')\n")
    load_plugin(path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "spoken" in err
    assert "written" in err


@pytest.fixture
def package(tmp_path, monkeypatch):
    """`package(text)` -> name of a package with one module of that text."""

    def write(text):
        folder = tmp_path / "half_written"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "my_score.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return folder.name

    yield write
    for name in [name for name in sys.modules if name.startswith("half_written")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ndef f(\n", "SyntaxError"),
        ("from bench.api.scores import Score\n", "ModuleNotFoundError"),
        ("\n\nassert False, 'unknown capability'\n", "unknown capability (my_score.py:3)"),
    ],
)
def test_a_module_that_does_not_import_is_told_in_a_sentence(package, text, words):
    with pytest.raises(BenchError, match=r"half_written/my_score.py does not import: ") as told:
        load_package(package(text))
    assert words in str(told.value)
    assert str(told.value).endswith("; mend the file.")
