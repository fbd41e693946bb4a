"""Which definitions a result can reach, and which edits change their hash."""

import importlib
import sys
import textwrap

import pytest

from bench.api.loading import load_plugin
from bench.running import source_code
from bench.running.source_code import SourceCode, loaded_source, plugins_digest

FIRST = '''
"""A module."""

from bench.api.registry import register
from small.second import helper

SCALE = 2.0
UNUSED = 1


def rooted(x: float) -> float:
    """Answer."""
    # a comment
    if x < 0:
        raise ValueError(f"{x} is negative.")
    return helper(x) * SCALE


def other(x):
    return x
'''
SECOND = """
from small import third as numbers


def helper(x):
    return numbers.LARGE + x


def unused(x):
    return numbers.SMALL
"""
THIRD = """
LARGE = 10
SMALL = 1
"""


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """`digest(first, second, third)` -> hash of what `rooted` reaches in a package of these."""
    monkeypatch.setattr(source_code, "PROJECT", tmp_path)
    monkeypatch.setattr(source_code, "PACKAGES", ("small",))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "__init__.py").write_text("")

    def hashed(first=FIRST, second=SECOND, third=THIRD):
        for name, text in (("first", first), ("second", second), ("third", third)):
            (tmp_path / "small" / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.partition(".")[0] == "small"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        module = importlib.import_module("small.first")
        return SourceCode().digest([module.rooted])

    yield hashed
    for name in [name for name in sys.modules if name.partition(".")[0] == "small"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another comment"),
        ('"""Answer."""', '"""Answer the question."""'),
        ('"""A module."""', ""),
        ("UNUSED = 1", "UNUSED = 2"),
        ("    return x\n", "    return -x\n"),
        ("(x: float) -> float:", "(x):"),
        ("is negative.", "is below zero."),
        ("return helper(x) * SCALE", "return (helper(x)\n            * SCALE)"),
    ],
)
def test_what_computes_nothing_changes_no_hash(digest, old, new):
    assert old in FIRST
    assert digest(FIRST.replace(old, new)) == digest()


def test_every_definition_on_the_way_counts(digest):
    usual = digest()
    assert digest(FIRST.replace("SCALE = 2.0", "SCALE = 3.0")) != usual
    assert digest(FIRST.replace("x < 0", "x <= 0")) != usual
    assert digest(second=SECOND.replace("+ x", "- x")) != usual
    assert digest(third=THIRD.replace("10", "11")) != usual
    assert digest(second=SECOND.replace("SMALL", "LARGE")) == usual
    assert digest(third=THIRD.replace("SMALL = 1", "SMALL = 2")) == usual


def test_a_statement_that_runs_at_import_counts(digest):
    assert digest(third=THIRD + "\nprint(LARGE)\n") != digest()


def test_what_a_registration_says_of_itself_does_not_count(digest):
    def registered(about, config="NoOptions"):
        return FIRST.replace(
            "def rooted",
            f'@register("score", "planted", title="{about}", config={config})\ndef rooted',
        ).replace("from small", "from bench.api.config import Config, NoOptions\nfrom small")

    from bench.api import registry

    def once(text):
        try:
            return digest(text)
        finally:
            registry._ENTRIES["score"].pop("planted", None)

    usual = once(registered("One"))
    assert once(registered("Two")) == usual
    assert once(registered("One", "Config")) != usual


def test_an_edit_after_the_import_changes_no_hash_of_this_process(digest, tmp_path):
    digest()
    root = sys.modules["small.first"].rooted
    usual = loaded_source().digest([root])
    edited = tmp_path / "small" / "third.py"
    edited.write_text(THIRD.replace("LARGE = 10", "LARGE = 11"))
    (tmp_path / "small" / "later.py").write_text("def late():\n    return 1\n")
    late = importlib.import_module("small.later").late
    assert loaded_source().digest([root]) == usual, "what ran is the code that was imported"
    assert loaded_source().digest([root, late]) != usual, "what was imported since is added"
    edited.unlink()
    assert SourceCode().digest([root]) == usual, "a file that is gone was imported all the same"
    assert digest(third=THIRD.replace("LARGE = 10", "LARGE = 11")) != usual, "a new import"


def test_a_plugin_counts_as_a_whole_and_as_it_was_imported(tmp_path):
    path = tmp_path / "source_code_plugin.py"
    text = "def answer():\n    return 1\n\n\ndef beside():\n    return 2\n"
    path.write_text(text)
    load_plugin(path)
    module = sys.modules["bench_plugin_source_code_plugin"]
    try:
        usual = SourceCode().digest([module.answer])
        path.write_text(text.replace("return 2", "return 3"))
        assert SourceCode().digest([module.answer]) == usual, "nobody has imported the edit"
        _forget(module.__name__)
        load_plugin(path)
        edited = sys.modules[module.__name__]
        assert SourceCode().digest([edited.answer]) != usual
        _forget(module.__name__)
        path.write_text("# a comment\n" + text)
        load_plugin(path)
        assert SourceCode().digest([sys.modules[module.__name__].answer]) == usual
    finally:
        _forget(module.__name__)


def _forget(name):
    from bench.api import loading

    del sys.modules[name]
    del loading._PLUGINS[name]


def test_an_edit_within_the_second_is_imported(tmp_path):
    path = tmp_path / "quick_plugin.py"
    for number in (1, 2, 3):
        path.write_text(textwrap.dedent(f"NUMBER = {number}\n"))
        load_plugin(path)
        assert number == sys.modules["bench_plugin_quick_plugin"].NUMBER
        _forget("bench_plugin_quick_plugin")


def test_a_plugin_reaches_what_it_inherits_and_what_lies_beside_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "beside_a_plugin.py").write_text("FACTOR = 2\n")
    path = tmp_path / "inheriting_plugin.py"
    path.write_text(
        "import beside_a_plugin\n"
        "from variants.scores.scaled_dot import ScaledDotScore\n\n\n"
        "class Own(ScaledDotScore):\n"
        "    factor = beside_a_plugin.FACTOR\n"
    )
    load_plugin(path)
    name = "bench_plugin_inheriting_plugin"
    try:
        root = sys.modules[name].Own
        usual = SourceCode().digest([root])
        inherited = SourceCode()
        code = inherited._sources["variants.scores.scaled_dot"]
        assert b"return " in code
        inherited._sources["variants.scores.scaled_dot"] = code.replace(b"return ", b"return 2 * ")
        assert inherited.digest([root]) != usual
        (tmp_path / "beside_a_plugin.py").write_text("FACTOR = 3\n")
        assert SourceCode().digest([root]) == usual, "nobody has imported the edit"
        del sys.modules["beside_a_plugin"]
        importlib.import_module("beside_a_plugin")
        assert SourceCode().digest([root]) != usual
    finally:
        _forget(name)
        sys.modules.pop("beside_a_plugin", None)


@pytest.mark.parametrize("late", [False, True])
def test_an_edit_of_a_module_beside_a_plugin_makes_other_plugins(tmp_path, monkeypatch, late):
    """What a worker loads after an edit is not what the run has loaded."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = {"first_beside": "from second_beside import FACTOR\n", "second_beside": "FACTOR = 1\n"}
    for name, text in names.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "unused_beside.py").write_text("FACTOR = 1\n")
    path = tmp_path / "helped_plugin.py"
    text = "import first_beside\n"
    path.write_text(f"def late():\n    {text}" if late else text)

    def loaded():
        load_plugin(path)
        found = plugins_digest()
        _forget("bench_plugin_helped_plugin")
        for name in names:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return found

    usual = loaded()
    (tmp_path / "unused_beside.py").write_text("FACTOR = 2\n")
    assert loaded() == usual, "nobody imports it"
    (tmp_path / "second_beside.py").write_text("FACTOR = 20\n")
    edited = loaded()
    assert edited != usual
    (tmp_path / "second_beside.py").write_text("FACTOR = (\n")
    if late:
        assert loaded() not in (usual, edited), "a module that is no Python counts all the same"
