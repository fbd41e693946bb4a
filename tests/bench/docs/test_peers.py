"""The stored comparisons with other people's code, and their page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import variants
from bench.api.registry import listed_variants
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.docs.peers import (
    STORED,
    WITHOUT,
    PeerComparison,
    peers_page,
    read_comparisons,
    read_without,
    store_comparisons,
)

ROOT = Path(__file__).parents[3]
STORED_NOW = read_comparisons(ROOT / STORED)
WITHOUT_NOW = read_without(ROOT / WITHOUT)
ONE = PeerComparison(
    variant="mha",
    reference="torch 2.13.0",
    compared="all",
    precision="float64",
    output=1e-12,
    gradient=None,
    limit=1e-10,
)


def test_the_page_of_the_site_is_the_rendering_of_the_stored_comparisons(site):
    wanted = peers_page(STORED_NOW, WITHOUT_NOW)
    assert (site / "peers.md").read_text(encoding="utf-8") == wanted
    lines = re.findall(r"^\| `", wanted, flags=re.MULTILINE)
    assert len(lines) == len(STORED_NOW)


def test_comparisons_are_stored():
    assert STORED_NOW


@pytest.mark.parametrize("one", STORED_NOW, ids=lambda one: f"{one.variant}, {one.reference}")
def test_a_stored_comparison_is_of_a_known_name_and_within_its_limit(one):
    variants.load_all()
    resolve(one.variant)
    assert one.commit, "no test makes this comparison any more"
    assert one.output <= one.limit
    assert one.gradient is None or one.gradient <= one.limit
    assert one.limit == {"float32": 1e-5, "float64": 1e-10}[one.precision] or one.note


def test_a_comparison_is_stored_over_the_one_of_the_same_thing(tmp_path):
    path = tmp_path / "peers.json"
    newer = replace(ONE, reference="torch 2.14.0", output=2e-12)
    store_comparisons(path, [ONE, replace(ONE, compared="more")])
    store_comparisons(path, [newer])
    assert read_comparisons(path) == [newer, replace(ONE, compared="more")]


def test_nothing_stored_is_no_comparison(tmp_path):
    assert read_comparisons(tmp_path / "none.json") == []
    assert "0 comparisons" in peers_page([])


def test_a_line_says_that_there_is_no_gradient_and_what_must_be_known():
    page = peers_page([replace(ONE, note="its table is reversed")])
    assert (
        "| `mha` | torch 2.13.0 | all. its table is reversed | float64 | 1.0e-12 | none |" in page
    )


def test_the_page_names_the_commits_that_were_compared():
    known = [replace(ONE, commit="a1"), replace(ONE, compared="more", commit="a1")]
    assert "with 1 reference, by commit `a1`." in peers_page(known)
    other = replace(ONE, compared="less", commit="b2")
    assert "by commits `a1` (2) and `b2` (1)." in peers_page([*known, other])


def test_names_without_a_reference_are_known_and_have_none():
    variants.load_all()
    compared = {parse(one.variant).name for one in STORED_NOW}
    assert set(WITHOUT_NOW) <= set(listed_variants())
    assert not compared & set(WITHOUT_NOW)
    assert "was found for `fire`, `tupe`; " in peers_page(STORED_NOW, ["fire", "tupe"])
    assert "was found" not in peers_page(STORED_NOW)


def test_nothing_is_read_where_no_names_are_stored(tmp_path):
    assert read_without(tmp_path / "none.txt") == []
