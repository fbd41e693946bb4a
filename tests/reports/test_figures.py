"""Drawings: stable bytes, unique ids, three channels, readable numbers of lines."""

import base64
import html
import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image
from synthetic_document import overview

from reports.blocks import QualityPoint
from reports.figures import Curve, Legend, Panel, panels, quality_cost_figure
from reports.figures.axes import scale_over
from reports.figures.canvas import draw
from reports.figures.inline import InlineDrawings
from reports.figures.labels import Box, Tag, place, spread
from reports.figures.maps import Map, attention_maps
from reports.figures.style import (
    COLORS,
    DASHES,
    INK,
    MARKERS,
    MOST_LINES,
    PAPER,
    STYLE_SHEET,
    looks,
)
from reports.figures.svg import width_of

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


def pixels(word: str) -> str:
    """A drawing of matplotlib."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.imshow([[0.0, 1.0]], cmap="gray")
        axes.set_title(word)

    return draw("pixels", WORDS, paint, size=(1.0, 1.0)).svg


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
    assert ">v7</text>" not in text
    assert "<title>v7</title>" in text


def test_the_page_decides_about_paper_and_ink() -> None:
    inline = InlineDrawings()
    maps = attention_maps(
        "maps", WORDS, [Map(title="m", query=("a",), source=("b",), weights=((1,),))]
    )
    text = "".join(map(inline.drawing, (many(2), maps.svg, pixels("a"))))
    for color in (INK, PAPER):
        assert color not in inline.style_sheet
        assert color not in text
    assert "var(--ink)" in inline.style_sheet
    assert "<style" not in text
    assert " style=" not in text.replace(' style="max-width', "")


def test_an_example_of_several_lines_has_a_title_of_one() -> None:
    said = {**WORDS, "title": "def f(x):\n    return x"}
    one = Map(title="m", query=("a",), source=("b",), weights=((1,),))
    maps = attention_maps("maps", said, [one])
    assert maps.title == "def f(x): return x"
    assert 'aria-label="def f(x): return x. What' in InlineDrawings().drawing(maps.svg)


def test_curves_are_named_at_their_ends() -> None:
    text = many(3)
    places = {
        name: float(re.findall(rf'y="([^"]+)" class="n">{name}<', text)[0]) for name in ("v0", "v2")
    }
    # the larger value ends higher up, which is a smaller coordinate
    assert places["v2"] + 12 <= places["v0"]


def test_nothing_is_drawn_outside_of_the_range_of_the_metric() -> None:
    line = Curve(name="v", x=(0.0, 1.0), y=(0.5, 0.99), low=(-0.4, 0.8), high=(1.4, 1.2))
    panel = Panel(title="t", x_label="step", y_label="s", lines=(line,), limits=(0.0, 1.0))
    text = panels("k", WORDS, [panel], Legend(looks(["v"]), {})).svg
    ticks = [float(tick) for tick in re.findall(r'class="t e">([-.0-9]+)<', text)]
    assert min(ticks) >= 0.0
    assert max(ticks) <= 1.0
    band = re.findall(r'class="b" d="M\S+ (\S+?)l', text)
    assert float(band[0]) == 28.0  # the top of the plot, where 1.4 would be far above


@pytest.mark.parametrize("wide", [(100.0, 101.0), (0.0, 0.0), (1e-9, 3e9), (-5.0, 5.0)])
def test_ticks_are_few_and_inside(wide: tuple[float, float]) -> None:
    for log in (False, True):
        scale = scale_over(wide, (0.0, 300.0), log=log)
        assert 1 <= len(scale.ticks) <= 8
        assert all(scale.low <= tick <= scale.high * (1 + 1e-9) for tick in scale.ticks)


def test_names_never_cover_a_point_or_another_name() -> None:
    tags = [Tag(50 + 7 * (at * 5 % 11), 60 + 6 * (at * 3 % 7), f"name_{at}") for at in range(30)]
    found = place(tags, Box(0, 0, 400, 300))
    boxes = [*found.values()]
    marks = [Box(tag.x - 4, tag.y - 4, tag.x + 4, tag.y + 4) for tag in tags]
    assert len(found) >= 20
    for at, box in enumerate(boxes):
        assert not any(box.meets(other) for other in (*boxes[:at], *marks))


@pytest.mark.parametrize("wanted", [[5.0] * 7, [0.0, 99.0, 100.0, 100.0], [40.0, 45.0, 52.0, 53.0]])
def test_names_at_ends_keep_their_order_and_a_line_between_them(wanted: list[float]) -> None:
    places = spread(wanted, 0.0, 100.0)
    order = sorted(range(len(wanted)), key=lambda at: (wanted[at], at))
    sorted_places = [places[at] for at in order]
    assert all(b - a >= 12 - 1e-9 for a, b in pairwise(sorted_places))
    assert min(places) >= 0
    assert max(places) <= 100


def test_every_point_of_the_overview_can_be_identified() -> None:
    data = overview()
    svg = quality_cost_figure(data).svg
    for point in data.points:
        assert f"<title>{point.name}" in svg
        assert f">{point.name}</text>" in svg
    fronts = [point.name for point in data.points if point.on_front]
    assert len(fronts) > 1
    assert svg.count("on the Pareto front") == len(fronts) + 1  # and once in the description
    assert 'class="f"' in svg


def test_a_crowd_of_one_cost_does_not_take_the_names_of_others() -> None:
    first = overview().points[0]
    at = replace(first, kind="variant", on_front=False, low=math.nan, high=math.nan)
    crowd = [replace(at, name=f"crowd{n}", cost=8.0, quality=0.9) for n in range(60)]
    small = [replace(at, name=f"small{n}", cost=1.0 + n, quality=0.2 + 0.1 * n) for n in range(5)]
    svg = quality_cost_figure(replace(overview(), points=(*crowd, *small))).svg
    assert all(f">{point.name}</text>" in svg for point in small)
    assert sum(f">{point.name}</text>" in svg for point in crowd) < 60


def test_an_overview_of_odd_points_is_drawn() -> None:
    first = overview().points[0]
    nothing = QualityPoint(
        name="<b>", quality=math.nan, low=math.nan, high=math.nan, cost=1.0, on_front=False
    )
    lone = replace(first, low=math.nan, high=math.nan, name="a<b>")
    for points in ((), (nothing,), (lone, nothing), (first, first)):
        svg = quality_cost_figure(replace(overview(), points=points)).svg
        assert "nan" not in svg
        assert "<b>" not in svg


def test_a_panel_of_curves_is_small() -> None:
    assert len(many(7)) < 2 * 12_000 + len(STYLE_SHEET)


def test_slim_drawings_keep_words_and_the_ids_that_are_used() -> None:
    svg = pixels(' id="x" trans')
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


def drawn_weights(svg: str) -> list[list[int]]:
    """Shades in the middle of the cells of a map of two by three."""
    (picture,) = re.findall(r'href="data:image/png;base64,([^"]+)"', svg)
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        wide, high = image.size
        return [
            [image.getpixel((wide * (2 * x + 1) // 6, high * (2 * y + 1) // 4)) for x in range(3)]
            for y in range(2)
        ]


def test_every_weight_is_a_cell_of_its_shade() -> None:
    weights = ((0.0, 0.5, 1.0), (1.5, -1.0, 0.2))
    one = Map(title="m", query=("a", "b"), source=("c", "d", "e"), weights=weights)
    svg = attention_maps("maps", WORDS, [one]).svg
    assert drawn_weights(svg) == [[0, 128, 255], [255, 0, 51]]


def test_gold_is_a_square_a_link_and_the_map_of_gold_has_none() -> None:
    links = ((1.0, 0.0), (1.0, 1.0))
    one = Map(title="m", query=("a", "b"), source=("c", "d"), weights=links, gold=links)
    assert [path.count("M") for path in _gold_of(one)] == [3]
    assert _gold_of(replace(one, is_gold=True)) == _gold_of(replace(one, gold=None)) == []


def _gold_of(one: Map) -> list[str]:
    svg = attention_maps("maps", WORDS, [one]).svg
    return re.findall(r'<path class="s2 w" fill="none" d="([^"]*)"', svg)


TOKENS = ("a", "extraordinarily", "incomprehensible", "W" * 30, "漢字仮名交じり文の例えば東京", ".")


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 6, 60])
def test_nothing_of_a_map_is_cut_off(count: int, length: int) -> None:
    words = (TOKENS * 10)[-length:]
    titles = ("dot", "multi-query differential attention of six heads, and then some more words")
    maps = [
        Map(title=titles[at % 2], query=words[at:] or words, source=words, weights=weights)
        for at, weights in enumerate([((0.5,) * length,) * max(1, length - 4)] * count)
    ]
    svg = attention_maps("maps", WORDS, maps).svg
    panels_ = re.findall(r'<svg class="panel"[^>]*viewBox="0 0 (\S+) (\S+)">(.*?)</svg>', svg)
    assert len(panels_) == -(-count // 4)
    for wide, high, body in panels_:
        boxes = [box for text in re.findall(r"<text.*?</text>", body) for box in _boxes_of(text)]
        assert len(boxes) > 2
        for left, top, right, bottom in boxes:
            assert 0 <= left <= right <= float(wide)
            assert 0 <= top <= bottom <= float(high)


def _boxes_of(text: str) -> Iterator[tuple[float, float, float, float]]:
    """Where words of an element lie, by the widths that a usual font has at most."""
    kinds = re.findall(r'class="([^"]+)"', text)[0].split()
    size = 11.0 if "h" in kinds else 10.0
    for x, y, word in re.findall(r'<t\w+ x="(\S+)" y="(\S+?)"[^>]*>(.*?)</t', text):
        width = width_of(html.unescape(word), size)
        if "rotate(-90)" in text:  # what was the horizontal axis points up
            yield float(y) - 0.8 * size, -float(x) - width, float(y) + 0.2 * size, -float(x)
        else:
            left = float(x) - width if "e" in kinds else float(x) - width / 2
            yield left, float(y) - 0.8 * size, left + width, float(y) + 0.2 * size


@pytest.mark.parametrize("token", ["$x$", "_a", "</text>", "漢字", "a" * 50])
def test_maps_print_any_token(token: str) -> None:
    one = Map(title="m", query=(token, "b"), source=(token,), weights=((1.0,), (0.0,)))
    svg = attention_maps("maps", WORDS, [one]).svg
    assert svg == attention_maps("maps", WORDS, [one]).svg
    assert "</text></text>" not in svg
