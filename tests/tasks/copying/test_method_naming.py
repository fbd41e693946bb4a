"""Names of functions: whole modules in one part, nothing in a body that tells its name."""

import pytest

from bench.api.answer import Answer
from bench.api.errors import DataUnavailable, InvalidConfig
from tasks.copying.method_naming import MethodNaming, MethodNamingConfig, part_of
from tasks.data.stdlib_methods import Method, body_words, load_methods, subtokens

SOURCE = '''
import os

class Basket:
    """Holds apples."""

    def __init__(self):
        self.apples = []

    def count_apples(self, deep=True):
        """Count apples, says the documentation."""
        if deep:  # count_apples again
            return self.count_apples(False) + len("count apples")
        def innerHelper(x):
            return x + 1 + 0x1F + x
        return innerHelper(len(self.apples))

try:
    def tiny(): pass
except OSError:
    async def read_all(stream): return await stream.read(self, all)
'''


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "lib"
    (folder / "test").mkdir(parents=True)
    (folder / "fruit").mkdir()
    (folder / "fruit" / "basket.py").write_text(SOURCE)
    (folder / "test" / "test_fruit.py").write_text(SOURCE)
    return folder


def test_bodies_hold_no_documentation_no_comment_and_not_their_own_name(library, tmp_path):
    found = {method.name: method for method in load_methods(library, cache_dir=tmp_path).rows}
    assert set(found) == {("count", "apples"), ("inner", "helper"), ("read", "all")}
    body = found["count", "apples"].body
    assert body[:8] == ("if", "deep", "return", "self", "<self>", "false", "len", "<string>")
    assert "documentation" not in body
    assert "again" not in body
    assert found["inner", "helper"].body == ("return", "x", "<number>", "<number>", "x")
    assert found["read", "all"].module == "fruit"


def test_a_library_that_changes_is_read_again(library, tmp_path):
    first = load_methods(library, cache_dir=tmp_path / "one")
    (library / "fruit" / "more.py").write_text("def add_one(x):\n    return x + 1 + x + x\n")
    second = load_methods(library, cache_dir=tmp_path / "two")
    assert len(second.rows) == len(first.rows) + 1
    assert first.note != second.note


def test_a_folder_without_source_says_what_to_do(tmp_path):
    with pytest.raises(DataUnavailable, match="use an interpreter"):
        load_methods(tmp_path)


def test_identifiers_fall_into_parts_and_strings_into_one_word():
    assert subtokens("parseHTTPResponse2_now") == ["parse", "http", "response", "2", "now"]
    assert body_words("""x = rb'it''s' + f"a{b}" + '''c'd''' # 'e'""", "") == ["x"] + 4 * [
        "<string>"
    ]


@pytest.fixture
def task(monkeypatch, tmp_path) -> MethodNaming:
    rows = [
        Method("json", ("get", "x"), ("return", "x", "self", "<self>")),
        Method("json", ("set", "x"), ("x", "x", "x", "x")),
        Method("test_part", ("get", "zebra"), ("return", "zebra", "zebra", "unseen")),
    ]
    rows += [row._replace(module="validation_part") for row in rows[1:]]
    rows.append(rows[2]._replace(module="json"))
    parts = {"json": "train", "test_part": "test", "validation_part": "validation"}
    monkeypatch.setattr("tasks.copying.method_naming.part_of", parts.__getitem__)
    methods = type("Methods", (), {"rows": rows, "note": "invented"})
    monkeypatch.setattr("tasks.copying.method_naming.load_methods", lambda: methods)
    return MethodNaming(MethodNamingConfig(vocab=50), 0)


def test_what_is_evaluated_is_not_trained_on_and_its_words_are_unknown(task):
    assert [pair.target for pair in task.pairs["train"]] == [("get", "x")]
    assert not task.knows("zebra")


def test_functions_of_each_part_are_counted_and_parts_that_are_too_small_are_told(task):
    assert task.notes["functions"] == (
        "train 3 (json 3), validation 2 (validation_part 2), test 1 (test_part 1)"
    )
    # the default is more than validation has in any Python
    assert "fewer rows" not in task.notes
    asked = MethodNaming(MethodNamingConfig(vocab=50, evaluate=2), 0)
    assert asked.notes["fewer rows"] == "1 of 2 in test"


def test_a_module_is_in_one_part_and_all_parts_have_some():
    names = ["json", "argparse", "asyncio", "tkinter", *(f"module{n}" for n in range(60))]
    assert {part_of(name) for name in names} == {"train", "validation", "test"}
    assert part_of("json") == part_of("json")


def test_parts_of_names_score_by_f1(task):
    (batch,) = task.evaluation("test")
    known = len(task.vocabulary)
    said = ((known + batch.extra_words[0].index("zebra"),),)
    found = {s.metric: s.value for s in task.score("test", [Answer(batch, generated=said)])}
    assert found["subtoken_f1"] == pytest.approx(2 / 3)
    assert found["sequence_accuracy"] == 0.0
    assert found["unknown_said_proportion"] == 1.0, "get is known"


@pytest.mark.parametrize("options", [{"words": 0}, {"vocab": 4}, {"train": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="method_naming: "):
        MethodNaming(MethodNamingConfig(**options), 0)


@pytest.mark.slow
def test_the_modules_of_the_library_share_no_part_and_name_functions(tmp_path):
    methods = load_methods(cache_dir=tmp_path)
    modules = {
        part: {m.module for m in methods.rows if part_of(m.module) == part}
        for part in ("train", "validation", "test")
    }
    assert all(len(found) > 5 for found in modules.values())
    assert len(methods.rows) > 3000
    assert methods == load_methods(cache_dir=tmp_path)
