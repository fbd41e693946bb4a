"""docs/coverage.md: what it names exists. It asks nothing of names that came after the sources."""

import ast
import functools
import re
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.axes import AXES
from bench.api.errors import BenchError
from bench.api.options import canonical
from bench.api.resolve import resolve
from bench.api.selector import parse

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
PENDING = "<!-- pending"
WITHOUT_NAME = ("no mechanism:", "claim", "not provided", "listed under")


def table_rows(text):
    """Cells of every row of every table, headings and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[2] != "test" and not row[0].startswith("---")]


ROWS = table_rows(TEXT)


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def not_provided(text):
    """Rows and bullets that say that something is not here, as statement and reason."""
    bullets = [(line, line) for line in text.splitlines() if line.startswith("- ")]
    rows = [(row[0], row[1]) for row in table_rows(text)]
    return [(what, why) for what, why in rows + bullets if "not provided" in why]


def registered_names_in(what, why):
    """Names of the registry that a sentence of absence quotes, or all words of which it has."""
    words = re.findall(r"[a-z0-9]+", f"{what} {why}".lower())
    said = {name for name in quoted(why) if is_registered(name)}
    for axis in AXES:
        for name in registry.registrations(axis):
            parts = name.split("_")
            if len(parts) > 1 and all(any(w.startswith(p) for w in words) for p in parts):
                said.add(name)
    return said


def is_registered(selector):
    """Whether it is a variant with these options, or a thing of any axis with these options."""
    try:
        resolve(selector)
    except BenchError:
        pass
    else:
        return True
    asked = parse(selector)
    for axis in AXES:
        try:
            canonical(axis, asked)
        except BenchError:
            continue
        return True
    return False


@functools.cache
def functions_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def exists(reference):
    path, _, name = reference.partition("::")
    return (ROOT / path).is_file() and name.startswith("test_") and name in functions_in(path)


def test_every_row_has_three_cells_and_is_there_once():
    assert len(ROWS) > 200
    assert not [row for row in ROWS if len(row) != 3]
    assert len({tuple(row) for row in ROWS}) == len(ROWS)


def test_every_document_and_the_errors_have_a_table():
    for title in ("F0", "F1", "F2", "F3", "Errors of the sources", "Not named by the sources"):
        section = TEXT.partition(f"\n## {title}")[2].partition("\n## ")[0]
        assert len(table_rows(section)) > 10, title


def test_every_name_is_registered_with_the_options_it_is_given():
    provided = [row for row in ROWS if "not provided" not in row[1]]
    assert not {name for row in provided for name in quoted(row[1]) if not is_registered(name)}


def test_nothing_that_is_registered_is_said_to_be_missing():
    for what, why in not_provided(TEXT):
        assert quoted(why), f"{what}: say in backquotes which name it would have"
        assert not registered_names_in(what, why), what


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("| 7 logistic sigmoid, each weight by itself | not provided | — |", "logistic_sigmoid"),
        ("| neural programmers attend | not provided | — |", "neural_programmer"),
        ("| Google's deep stack | not provided: `gnmt` would be it | — |", "gnmt"),
        ("- Labels of edges, `relation_aware`: not provided.", "relation_aware"),
    ],
)
def test_a_row_that_calls_a_registered_thing_missing_is_found(row, name):
    ((what, why),) = not_provided(row)
    assert name in registered_names_in(what, why)


def test_a_row_of_what_is_not_here_is_let_be():
    row = "| a score of tomorrow | not provided: `score_of_tomorrow` would be it | — |"
    assert [registered_names_in(*one) for one in not_provided(row)] == [set()]


def test_every_test_that_is_named_exists():
    named = [reference for row in ROWS for reference in quoted(row[2])]
    assert len(named) > 200
    assert not {reference for reference in named if not exists(reference)}


def test_a_name_has_a_test_and_a_row_without_a_name_says_why():
    errors = table_rows(TEXT.partition("\n## Errors")[2].partition("\n## ")[0])
    for row in ROWS:
        if quoted(row[1]):
            assert quoted(row[2]), row
        elif row not in errors:
            assert any(words in row[1] for words in WITHOUT_NAME), row


def test_quotations_are_short():
    for row in ROWS:
        for quotation in re.findall(r'"([^"]+)"', row[0]):
            assert len(quotation.split()) <= 10, quotation


def test_the_controls_of_the_page_are_controls():
    controls = quoted(TEXT.partition("\nControls (")[2].partition(")")[0])
    assert controls
    assert all(registry.listed_variants()[name].control for name in controls)


def test_a_name_that_came_after_the_sources_needs_no_line():
    names = {parse(name).name for row in ROWS for name in quoted(row[1])}
    assert is_registered("scaled_dot")
    assert not is_registered("a_score_of_tomorrow")
    assert len(names) > 100


def test_nothing_is_pending():
    assert not [line for line in TEXT.splitlines() if PENDING in line]


@pytest.mark.parametrize(
    ("axis", "name", "text"),
    [
        ("recipe", "bahdanau", "Bahdanau et al., 2015"),
        ("score", "additive", "Bahdanau et al., 2015"),
        ("recipe", "agreement_trace", "Cohn et al., 2016"),
        ("recipe", "cohn_structural", "Cohn et al., 2016"),
        ("recipe", "multi_source", "Zoph & Knight, 2016"),
        ("position", "learned", "Gehring et al., 2017"),
    ],
)
def test_dates_that_a_source_gets_wrong_are_right_here(axis, name, text):
    assert registry.find(axis, name).citation.text == text
