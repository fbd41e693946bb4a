"""Discovery: packages are imported once, and a plug-in that does not import is one sentence."""

import sys

import pytest

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
        ("import nowhere_at_all", r"failed to import: ModuleNotFoundError\(.*mend the file"),
        ("def broken(:", "failed to import: SyntaxError"),
        ("1 / 0", "failed to import: ZeroDivisionError"),
        (
            "from bench.api.registry import register\nregister('score', 'dot')(type('D', (), {}))",
            "already registered by variants.scores.dot; choose another name",
        ),
        (
            "from bench.api.component import Score\n"
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
