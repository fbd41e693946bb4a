"""Drawings: stable bytes, unique ids, three channels, readable numbers of lines."""

import math
import re

import pytest

from reports.figures import Curve, Legend, Panel, panels
from reports.maps import Map, attention_maps
from reports.style import COLORS, DASHES, INK, MARKERS, MOST_LINES, for_page, looks

WORDS = {"title": 'A <b> "title"', "description": "What & why", "caption": "c"}


def many(count: int, key: str = "curves") -> str:
    names = [f"v{at}" for at in range(count)]
    x = tuple(float(step) for step in range(20))
    lines = tuple(
        Curve(name=name, x=x, y=tuple(math.sqrt(v + at) for v in x), low=x, high=x)
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


def test_slim_drawings_keep_words_and_the_ids_that_are_used() -> None:
    token = ' id="x" transform="1.23456" <g></g>'
    one = Map(title="m", query=(token[:14], "b"), source=("a",), weights=((0.5,), (0.5,)))
    svg = attention_maps("maps", WORDS, [one]).svg
    assert ' id="x" trans' in svg.replace("&quot;", '"')
    assert not re.search(r"<g(/>|>\s*</g>)", svg)
    assert not re.search(r'<path[^>]* d="[^"]*\.\d{3}', svg)
    used = set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg))
    assert set(re.findall(r'<(?!title|desc)[^>]*\bid="([^"]+)"', svg)) - {"x"} <= used


def test_maps_of_the_same_words_name_them_once() -> None:
    one = Map(title="m", query=("sat", "."), source=("a", "b"), weights=((1.0, 0.0),) * 2)
    other = Map(title="n", query=("stood", "."), source=("a", "b"), weights=((1.0, 0.0),) * 2)
    assert attention_maps("maps", WORDS, [one, one]).svg.count(">sat<") == 1
    assert attention_maps("maps", WORDS, [one, other]).svg.count(">stood<") == 1


def test_mere_numbers_of_places_are_named_every_fifth() -> None:
    places = tuple(str(at) for at in range(1, 31))
    one = Map(title="m", query=places, source=places, weights=((0.1,) * 30,) * 30)
    svg = attention_maps("maps", WORDS, [one]).svg
    assert svg.count(">25<") == 2
    assert ">24<" not in svg


@pytest.mark.parametrize("token", ["$x$", "_a", "</text>", "漢字", "a" * 50])
def test_maps_print_any_token(token: str) -> None:
    one = Map(title="m", query=(token, "b"), source=(token,), weights=((1.0,), (0.0,)))
    svg = attention_maps("maps", WORDS, [one]).svg
    assert svg == attention_maps("maps", WORDS, [one]).svg
    assert "</text></text>" not in svg
