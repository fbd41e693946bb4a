"""Which definitions a result can reach, and which edits change their hash."""

import importlib
import subprocess
import sys
import textwrap

import pytest

from bench.api import loading
from bench.api.loading import load_plugin
from bench.running import source_code
from bench.running.processes import PRELOADED
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


BESIDE = {
    "late_module.py": "FACTOR = 1\n",
    "late_package/__init__.py": "",
    "late_package/inner/deep.py": "from .. import other\nFACTOR = 1\n",
    "late_package/other.py": "def (\n",
    "late_package/.venv/library.py": "FACTOR = 1\n",
    "spaced/part.py": "from other_beside import FACTOR\n",
    "other_beside.py": "FACTOR = 1\n",
    "unused.py": "FACTOR = 1\n",
}
LATE = """
def answer():
    import late_module
    from late_package.inner import deep
    from spaced import part

    return late_module.FACTOR * deep.FACTOR * part.FACTOR
"""


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("on_the_path", [False, True])
def test_what_a_plugin_imports_within_functions_counts_with_all_of_a_package(
    tmp_path, monkeypatch, name, on_the_path
):
    """The driver never runs such a function, and must know what workers import."""
    if on_the_path:
        monkeypatch.syspath_prepend(tmp_path)
    for one, text in BESIDE.items():
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).write_text(text)
    plugin = tmp_path / "late_plugin.py"
    plugin.write_text(LATE)

    def digests():
        load_plugin(plugin)
        try:
            root = sys.modules["bench_plugin_late_plugin"].answer
            return SourceCode().digest([root]), plugins_digest()
        finally:
            _forget("bench_plugin_late_plugin")

    before = digests()
    (tmp_path / name).write_text(BESIDE[name] + "MORE = 2\n")
    counts = [one != other for one, other in zip(before, digests(), strict=True)]
    assert counts == [name not in ("late_package/.venv/library.py", "unused.py")] * 2


def test_a_part_in_a_package_beside_a_plugin_counts_with_its_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "package_beside"
    folder.mkdir()
    (folder / "part.py").write_text("def answer():\n    from package_beside import late\n")
    (folder / "late.py").write_text("FACTOR = 1\n")
    plugin = tmp_path / "thin_plugin.py"
    plugin.write_text("from package_beside.part import answer\n")

    def digest():
        load_plugin(plugin)
        try:
            return SourceCode().digest([sys.modules["package_beside.part"].answer])
        finally:
            _forget("bench_plugin_thin_plugin")
            for name in ("package_beside.part", "package_beside"):
                del sys.modules[name]

    usual = digest()
    (folder / "late.py").write_text("FACTOR = 2\n")
    assert digest() != usual


def test_a_checkout_of_a_library_and_our_own_packages_are_not_beside_a_plugin(tmp_path):
    for name in ("sklearn", "variants"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.py").write_text("FACTOR = 1\n")
    (tmp_path / "bench.py").write_text("FACTOR = 1\n")
    plugin = tmp_path / "lone_plugin.py"
    plugin.write_text("def late():\n    import bench, sklearn.part, variants.part\n")
    load_plugin(plugin)
    try:
        assert loading._PLUGINS["bench_plugin_lone_plugin"].beside == {}
    finally:
        _forget("bench_plugin_lone_plugin")


def test_a_file_that_is_written_during_its_import_has_the_hash_of_neither_text(digest, monkeypatch):
    monkeypatch.setattr(source_code, "_BEFORE", {})
    edited = THIRD.replace("LARGE = 10", "LARGE = 11")
    usual, other = digest(), digest(third=edited)
    digest()
    source_code.note_files()
    assert digest() == usual
    assert digest(third=edited) not in (usual, other)


def test_the_server_of_workers_reads_the_files_before_it_imports_them():
    script = (
        "import sys, bench.running.before_imports, bench.running.source_code as code\n"
        "assert not {'torch', 'variants', 'tasks'} & sys.modules.keys()\n"
        "assert code.PROJECT / 'variants' / 'scores' / 'dot.py' in code._BEFORE\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=source_code.PROJECT)
    assert PRELOADED[0] == "bench.running.before_imports"


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
