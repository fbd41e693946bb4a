"""Every variant that is listed has a title page, wherever it is registered."""

import pytest
from click.testing import CliRunner

from bench.api import registry
from bench.cli.main import cli
from variants import load_all

load_all()
LISTED = registry.listed_variants()


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_variant_says_its_paper_and_how_it_differs_from_it(name):
    page = LISTED[name].title_page()

    assert LISTED[name].differences()
    assert LISTED[name].citation is None or LISTED[name].citation.url in page


def test_entries_that_share_a_module_do_not_share_a_title_page():
    pages = [entry.title_page() for entry in LISTED.values() if "recipes" in entry.module]

    assert len(pages) == len(set(pages))


def test_show_prints_the_title_page_of_a_variant_that_shares_its_file():
    shown = CliRunner().invoke(cli, ["show", "luong_global"]).output

    assert "Effective approaches to attention-based neural machine translation" in shown
    assert "Deviations: those of the general score and of the decoder `luong`." in shown


def test_show_prints_a_page_once_for_a_component_and_its_recipe():
    shown = CliRunner().invoke(cli, ["show", "mocha"]).output

    assert shown.count("softmax over a small window that ends where a walk stops") == 1
    assert "deviations those of the normalizer `mocha`" in shown


def test_two_recipes_of_one_name_in_one_file_are_an_error():
    registry.register_recipe("test_twice", registry.Recipe(axes={"score": "dot"}), module="a")

    with pytest.raises(registry.InvalidConfig, match="already registered"):
        registry.register_recipe("test_twice", registry.Recipe(axes={}), module="a")
    del registry._ENTRIES["recipe"]["test_twice"]
