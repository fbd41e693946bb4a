"""Drawings: stable bytes, unique ids, three channels, readable numbers of lines."""

import math
import re

import pytest

from reports.figures import Legend, Line, Panel, panels
from reports.maps import Map, attention_maps
from reports.style import COLORS, DASHES, INK, MARKERS, MOST_LINES, for_page, looks

WORDS = {"title": 'A <b> "title"', "description": "What & why", "caption": "c"}


def many(count: int, key: str = "curves") -> str:
    names = [f"v{at}" for at in range(count)]
    x = tuple(float(step) for step in range(20))
    lines = tuple(
        Line(name=name, x=x, y=tuple(math.sqrt(v + at) for v in x), low=x, high=x)
        for at, name in enumerate(names)
    )
    panel = Panel(title="t", x_label="step", y_label="score", lines=lines)
    return panels(key, WORDS, [panel, panel], Legend(looks(names), {})).svg


def test_the_same_figure_has_the_same_bytes() -> None:
    assert many(3) == many(3)


def test_ids_of_two_figures_never_meet() -> None:
    first, second = (set(re.findall(r'\bid="([^"]+)"', many(2, key))) for key in ("a", "b"))
    assert first
    assert not first & second
    text = many(2, "a")
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert used <= first


def test_a_figure_can_be_read_aloud() -> None:
    text = many(2)
    assert 'role="img"' in text
    assert "A &lt;b&gt; &quot;title&quot;" in text
    assert "What &amp; why" in text


def test_color_is_never_the_only_channel() -> None:
    assert (
        len(set(COLORS)) == len({str(dash) for dash in DASHES}) == len(set(MARKERS)) == MOST_LINES
    )


def test_more_lines_than_looks_turn_gray() -> None:
    text = many(12)
    assert "5 others" in text
    assert "v7" not in text


def test_the_page_decides_about_paper_and_ink() -> None:
    text = for_page(many(2))
    assert INK not in text
    assert "var(--ink)" in text
    assert "<style" not in text


@pytest.mark.parametrize("token", ["$x$", "_a", "</text>", "漢字", "a" * 50])
def test_maps_print_any_token(token: str) -> None:
    one = Map(title="m", query=(token, "b"), source=(token,), weights=((1.0,), (0.0,)))
    svg = attention_maps("maps", WORDS, [one]).svg
    assert svg == attention_maps("maps", WORDS, [one]).svg
    assert "</text></text>" not in svg
