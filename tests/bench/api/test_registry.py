"""Registration, plug-ins, and what is listed."""

import sys

import pytest

from bench.api import registry
from bench.api.errors import BenchError, InvalidConfig, UnknownName
from bench.api.registry import (
    AXES,
    Citation,
    DefaultTask,
    Recipe,
    add_registration,
    find,
    listed_variants,
    load_package,
    load_plugin,
    register,
    register_recipe,
    registrations,
)


@pytest.fixture(autouse=True)
def _isolated(fresh_registry):
    pass


def test_every_axis_but_those_of_nothing_has_entries():
    assert [axis for axis in AXES if not registrations(axis)] == []


def test_listed_variants_are_those_with_a_default_task_and_are_sorted():
    listed = listed_variants()
    assert list(listed) == sorted(listed)
    assert all(item.default_task is not None for item in listed.values())
    assert {"scaled_dot", "bahdanau", "linear_attention", "none_state"} <= set(listed)
    controls = {name for name, item in listed.items() if item.control}
    assert {"none_state", "random", "aa_control", "uniform"} <= controls
    assert not {"scaled_dot", "bahdanau"} & controls


def test_loading_a_package_again_changes_nothing():
    before = {axis: registrations(axis) for axis in AXES}
    load_package("variants")
    registry._LOADED.discard("variants")
    load_package("variants")
    for axis in AXES:
        assert before[axis].items() <= registrations(axis).items()


def test_an_unknown_name_is_answered_with_the_closest_and_where_to_look():
    with pytest.raises(UnknownName, match=r"did you mean 'additive'\?.*bench list score"):
        find("score", "addtive")


def test_a_name_taken_by_another_module_is_refused():
    with pytest.raises(InvalidConfig, match="'dot' of elsewhere is already registered"):
        add_registration(
            registry.Registration(axis="score", name="dot", target=object, module="elsewhere")
        )


def test_a_name_taken_in_the_same_module_is_refused():
    class First:
        """One."""

    class Second:
        """Two."""

    register("score", "mine")(First)
    with pytest.raises(InvalidConfig, match="choose another name"):
        register("score", "mine")(Second)
    assert find("score", "mine").target is First


def test_an_unknown_axis_is_refused():
    with pytest.raises(InvalidConfig, match="did you mean 'score'"):
        register("scores", "mine")(object)


def test_a_title_is_the_first_line_of_the_docstring_unless_it_is_given():
    class Mine:
        """What it does.

        More.
        """

    register("score", "one")(Mine)
    register("mask", "two", title="Another")(Mine)
    assert (find("score", "one").title, find("mask", "two").title) == (
        "What it does",
        "Another",
    )


def test_a_recipe_is_data():
    register_recipe(
        "mine",
        Recipe(axes={"score": "dot"}),
        module=__name__,
        title="Mine",
        citation=Citation(text="Me", url="https://example.org"),
        default_task=DefaultTask(task="recall"),
    )
    assert "mine" in listed_variants()


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
