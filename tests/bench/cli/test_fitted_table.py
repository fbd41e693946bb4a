"""Tables of the command line fit the terminal; what is piped stays whole."""

import random

import pytest

from bench.cli.fitted_table import fitted_table, terminal_width

HEADS = ["name", "what it does", "paper"]
ROWS = [
    ["a_rather_long_name_of_a_part", "many words that say what it does " * 4, "Somebody, 2015"],
    ["short", "few words", "Somebody with a long name and others, 2020"],
]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width):
    lines = fitted_table(ROWS, HEADS, width).splitlines()
    assert max(map(len, lines)) <= width
    said = " ".join(lines).split()
    assert not {word for row in ROWS for field in row for word in field.split()} - set(said)


def test_what_is_piped_has_a_line_a_row(monkeypatch):
    assert len(fitted_table(ROWS, HEADS).splitlines()) == 2 + len(ROWS)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert terminal_width() is None


def test_a_name_is_never_folded():
    rng = random.Random(0)
    for _ in range(20):
        rows = [["n" * rng.randint(1, 40), "w " * rng.randint(1, 80)] for _ in range(3)]
        folded = fitted_table(rows, ["name", "what"], rng.randint(20, 80))
        assert all(f"{row[0]} " in folded for row in rows)


def test_a_terminal_that_is_too_narrow_gets_what_fits_least():
    assert "Somebody" in fitted_table(ROWS, HEADS, 10)
