"""Registration, plug-ins, and what is listed."""

from dataclasses import replace

import pytest

from bench.api import registry
from bench.api.axes import AXES
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import (
    Citation,
    DefaultTask,
    Recipe,
    Registration,
    add_registration,
    find,
    listed_variants,
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


def test_an_unknown_name_is_answered_with_the_closest_and_where_to_look():
    with pytest.raises(UnknownName, match=r"did you mean 'additive'\?.*bench list score"):
        find("score", "addtive")


def test_the_name_of_a_data_set_is_answered_with_the_tasks_that_read_it():
    with pytest.raises(UnknownName, match=r"'multi30k' is no task but a data set; .*translation"):
        registry.find("task", "multi30k")


def test_a_name_taken_by_another_module_is_refused():
    with pytest.raises(InvalidConfig, match="'dot' of elsewhere is already registered"):
        add_registration(
            registry.Registration(axis="score", name="dot", target=object, module="elsewhere")
        )


@pytest.mark.parametrize("axis", ["recipe", "normalizer"])
def test_a_plug_in_takes_no_name_by_which_a_variant_of_ours_is_asked_for(axis):
    """Recipes are looked up first, so that it would silently be the baseline of everything."""
    new = replace(registry.find(axis, "dsa"), name="scaled_dot", module="bench_plugin_mine")
    with pytest.raises(InvalidConfig, match="has the name of the score of variants"):
        registry.add_registration(new)
    assert "scaled_dot" not in registry.registrations(axis)


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


def test_a_title_page_of_its_own_wins_over_the_docstring_of_the_module():
    entry = {"axis": "score", "name": "some", "target": object, "module": __name__}
    assert Registration(**entry).title_page() == __doc__
    assert Registration(**entry, about="Its own page.").title_page() == "Its own page."
    assert Registration(**{**entry, "module": "nowhere"}).title_page() == ""
