"""The page in a real browser: what a reader sees first, what works by mouse and keyboard.

`make browser-test` installs what these tests need beside Chromium; without it they skip and say so.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_document import NEEDS, overview, with_first_screen

from reports.choices import COLUMNS
from reports.folder import read_folder
from reports.html import page as written
from reports.render import RenderedReport, document

HERE = Path(__file__).parent
NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
BROWSER = os.environ.get("BENCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
AXE = HERE / "browser" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = (1280, 800), (390, 844)
LEAST_CELL, MOST_CELL = 40, 160
"""Width and height of a cell of the choices (pixels): a word beside its padding, eight lines."""
THEMES = ("light", "dark")
MOST_BYTES = 2_000_000
MOST_SCREENS = 30

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here: install chromium"),
]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    reason = "no playwright here: run `make browser-test`"
    sync_api = pytest.importorskip("playwright.sync_api", reason=reason)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Open]:
    """Open a file; in the end nothing may have been asked of a network or told to the console."""
    contexts, told = [], []

    def open_(
        path: Path, view: str = "", size: tuple[int, int] = WIDE, theme: str = "light"
    ) -> Any:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=theme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: told.append(request.url) if _foreign(request) else None)
        page.goto(f"{path.as_uri()}{view and '#'}{view}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert told == []


def _foreign(request: Any) -> bool:
    return not request.url.startswith(("file:", "data:"))


@pytest.fixture(scope="module")
def full(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all that a first screen can have."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(written(with_first_screen(document(read_folder(demo)))), encoding="utf-8")
    return path


def height_and_width(page: Any) -> tuple[int, int]:
    root = "document.documentElement"
    return tuple(page.evaluate(f"[{root}.scrollHeight, {root}.scrollWidth]"))


def bottom(page: Any, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None, selector
    return float(box["y"] + box["height"])


def test_a_page_that_loads_something_is_noticed(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "loud.html"
    path.write_text('<img src="http://127.0.0.1:9/x.png" alt="x">', encoding="utf-8")
    page = browser.new_page()
    asked: list[bool] = []
    page.on("request", lambda request: asked.append(_foreign(request)))
    page.goto(path.as_uri())
    page.close()
    assert asked == [False, True]


@pytest.mark.parametrize("theme", THEMES)
def test_the_first_screen_holds_the_sentence_and_choices(
    visit: Open, full: Path, theme: str
) -> None:
    page = visit(full, theme=theme)
    assert page.locator("#choices tbody tr").count() == len(NEEDS)
    for selector in ("h1", ".headline", "#choices thead", "#choices tbody tr:nth-child(3)"):
        assert bottom(page, selector) <= WIDE[1], selector
    assert bottom(page, "#quality-cost .wide") <= 2.5 * WIDE[1]
    names = page.locator("#quality-cost .wide text").all_text_contents()
    assert {point.name for point in overview().points} <= set(names)


def test_no_cell_of_the_choices_is_squeezed(visit: Open, full: Path) -> None:
    page = visit(full)
    sizes = page.evaluate(
        """[...document.querySelectorAll('#choices td')]
        .map((cell) => [cell.offsetWidth, cell.offsetHeight])"""
    )
    assert len(sizes) == len(NEEDS) * len(COLUMNS)
    assert min(width for width, _ in sizes) >= LEAST_CELL
    assert max(height for _, height in sizes) <= MOST_CELL
    assert height_and_width(page)[1] == WIDE[0]


def test_names_in_the_overview_do_not_overlap(visit: Open, full: Path) -> None:
    names = [point.name for point in overview().points]
    for size, shown in ((WIDE, ".wide"), (NARROW, ".narrow")):
        page = visit(full, size=size)
        boxes = page.evaluate(
            """([shown, names]) => [...document.querySelectorAll(`#quality-cost ${shown} text`)]
            .filter((text) => names.includes(text.textContent))
            .map((text) => text.getBoundingClientRect().toJSON())""",
            [shown, names],
        )
        assert len(boxes) >= 0.7 * len(names)
        for at, one in enumerate(boxes):
            assert one["right"] <= size[0]
            # a line of text has some air above and below its letters
            assert not any(
                one["left"] < other["right"]
                and other["left"] < one["right"]
                and one["top"] + 2 < other["bottom"] - 2
                and other["top"] + 2 < one["bottom"] - 2
                for other in boxes[:at]
            )


@pytest.mark.parametrize("opened", [False, True])
def test_a_telephone_never_scrolls_sideways(visit: Open, full: Path, opened: bool) -> None:
    page = visit(full, size=NARROW)
    assert bottom(page, "h1") <= NARROW[1]
    if opened:
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    assert height_and_width(page)[1] == NARROW[0]


def test_long_words_never_make_a_telephone_scroll_sideways(
    visit: Open, demo: Path, tmp_path: Path
) -> None:
    long = with_first_screen(document(read_folder(demo)))
    word = "unbroken_" * 30
    long = replace(long, title=word, headline=word, facts=((word, word),), lead=word)
    path = tmp_path / "long.html"
    path.write_text(written(long), encoding="utf-8")
    assert height_and_width(visit(path, size=NARROW))[1] == NARROW[0]


def test_parts_are_folded_and_a_deep_link_opens_its_part(visit: Open, full: Path) -> None:
    page = visit(full)
    assert page.locator("details.part").count() > 5
    assert page.locator("details.part[open]").count() == 0
    page = visit(full, "ranked-2")
    assert page.locator("details.part[open]").count() == 1
    assert page.locator("#ranked-2").is_visible()
    page.evaluate("location.hash = 'learning'")
    page.wait_for_function("document.querySelectorAll('details.part[open]').length === 2")
    assert page.locator("#learning").bounding_box()["y"] < WIDE[1]


def test_one_button_opens_and_closes_all_parts(visit: Open, full: Path) -> None:
    page = visit(full)
    parts = page.locator("details.part").count()
    page.get_by_role("button", name="Open all parts").click()
    assert page.locator("details.part[open]").count() == parts
    page.get_by_role("button", name="Close all parts").click()
    assert page.locator("details.part[open]").count() == 0


def scores(page: Any, column: int = 2) -> list[float]:
    """Values of a column of `ranked-2`, in the order of its rows."""
    cells = page.evaluate(
        """(column) => [...document.querySelectorAll("#ranked-2 tbody tr")]
        .map((row) => row.cells[column].dataset.sort ?? row.cells[column].textContent)""",
        column,
    )
    return [float(cell) for cell in cells if re.fullmatch(r"[-+.e\d]+", cell)]


def test_a_click_sorts_and_another_turns_the_order(visit: Open, full: Path) -> None:
    page = visit(full, "ranked-2")
    head = page.locator("#ranked-2 th").nth(2)
    head.get_by_role("button").click()
    first = scores(page)
    direction = head.get_attribute("aria-sort")
    assert first == sorted(first, reverse=direction == "descending")
    assert len(set(first)) > 2
    head.get_by_role("button").click()
    assert scores(page) == first[::-1]
    assert head.get_attribute("aria-sort") != direction


def test_a_link_opens_a_sorted_and_filtered_view(visit: Open, full: Path) -> None:
    page = visit(full, "sort=ranked-2:2:descending&filter=ranked-2:attention")
    assert page.locator("#ranked-2 tbody tr:visible").count() == 2
    assert "2 of 8 rows" in page.locator("#ranked-2-tools").inner_text()
    assert scores(page) == sorted(scores(page), reverse=True)


def test_missing_values_stay_last(visit: Open, full: Path) -> None:
    for direction in ("ascending", "descending"):
        page = visit(full, f"sort=ranked-2:0:{direction}")
        assert "mocha" in page.locator("#ranked-2 tbody tr").last.inner_text()


def test_typing_filters_rows(visit: Open, full: Path) -> None:
    page = visit(full, "ranked-2")
    page.locator("#ranked-2-tools input").fill("no_att")
    assert page.locator("#ranked-2 tbody tr:visible").count() == 1
    page.locator("#ranked-2-tools input").fill("")
    assert page.locator("#ranked-2 tbody tr:visible").count() == 8


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_follows_the_system_until_a_reader_chooses(
    visit: Open, full: Path, theme: str
) -> None:
    page = visit(full, theme=theme)
    dark = "rgb(20, 23, 26)", "rgb(255, 255, 255)"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == dark[theme == "light"]
    page.locator("#theme").click()
    assert page.evaluate(paper) == dark[theme == "dark"]
    page.reload()
    assert page.evaluate(paper) == dark[theme == "dark"]


def test_everything_works_by_keyboard(visit: Open, full: Path) -> None:
    page = visit(full)

    def held() -> str:
        return str(page.evaluate("document.activeElement.textContent.trim().slice(0, 40)"))

    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(held())
    assert any("Dark theme" in name for name in reached)
    assert any("Open all parts" in name for name in reached)
    part = page.locator("details.part summary").first
    part.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.part[open]").count() == 1
    page = visit(full, "ranked-2")
    button = page.locator("#ranked-2 th button").nth(2)
    button.focus()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.keyboard.press("Enter")
    assert page.locator("#ranked-2 th").nth(2).get_attribute("aria-sort") != "none"
    assert outline != "none"


def test_a_table_that_fits_is_no_stop_for_the_keyboard(visit: Open, full: Path) -> None:
    for size in (WIDE, NARROW):
        page = visit(full, "ranked-2", size=size)
        wrong = page.evaluate(
            """[...document.querySelectorAll(".scroll")].filter((box) => box.clientWidth
            && (box.scrollWidth > box.clientWidth) !== (box.tabIndex === 0)).length"""
        )
        assert wrong == 0


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_axe_finds_nothing(
    visit: Open,
    full: Path,
    families_report: RenderedReport,
    theme: str,
    size: tuple[int, int],
) -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core here: run `make browser-test`")
    for path, opened in ((full, False), (full, True), (families_report.html, True)):
        page = visit(path, theme=theme, size=size)
        if opened:
            page.evaluate("document.querySelectorAll('details').forEach((at) => at.open = true)")
        # a policy of the page forbids foreign scripts; the debugger may bring its own
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document).then((found) => found.violations)")
        told = [(one["id"], one["nodes"][0]["html"][:200], len(one["nodes"])) for one in found]
        assert told == [], (path.name, opened)


def test_the_largest_synthetic_page_is_light_and_short(visit: Open, full: Path) -> None:
    assert full.stat().st_size <= MOST_BYTES
    assert height_and_width(visit(full))[0] <= MOST_SCREENS * WIDE[1]


@pytest.mark.skipif("BENCH_REPORT" not in os.environ, reason="BENCH_REPORT names no report.html")
def test_a_real_report_is_light_short_and_painted_soon(visit: Open) -> None:
    """A page of a real run, which is too long to make here; the time has a margin of two."""
    path = Path(os.environ["BENCH_REPORT"]).resolve()
    page = visit(path)
    page.wait_for_function("performance.getEntriesByType('paint').length > 0")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert path.stat().st_size <= MOST_BYTES
    assert height_and_width(page)[0] <= MOST_SCREENS * WIDE[1]
    assert height_and_width(visit(path, size=NARROW))[1] == NARROW[0]
    assert paint < 2000


def current(page: Any, key: str) -> str:
    return str(page.locator(f"#{key} [aria-current=step]").inner_text())


def test_a_view_starts_at_the_first_output(visit: Open, families_report: RenderedReport) -> None:
    page = visit(families_report.html, "steps-4")
    assert current(page, "steps-4") == "the"
    shown = page.locator("#steps-4").inner_text()
    assert "1 of 4" in shown
    assert re.search(r"looks most at die \(0\.\d\d\)", shown)
    assert "Reference: the cat sits ." in shown
    assert page.locator("#steps-4 .gold").count() == 1
    assert page.locator(".steps[hidden]").count() == 0
    assert page.locator("details.still[open]").count() == 0


def test_buttons_and_arrow_keys_step_through(visit: Open, families_report: RenderedReport) -> None:
    page = visit(families_report.html, "steps-4")
    page.locator("#steps-4").get_by_label("Next output").click()
    page.locator("#steps-4 .stage").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert current(page, "steps-4") == "sits"
    assert "3 of 4" in page.locator("#steps-4").inner_text()
    assert "looks most at sitzt" in page.locator("#steps-4").inner_text()
    assert current(page, "steps-3") == "the"


def test_home_and_end_lead_to_the_ends_and_keep_the_keyboard(
    visit: Open, families_report: RenderedReport
) -> None:
    page = visit(families_report.html, "steps-4")
    page.locator("#steps-4 .stage").focus()
    for key in ("End", "ArrowLeft", "Home", "ArrowRight"):
        page.keyboard.press(key)
    page.locator("#steps-4").get_by_label("Previous output").press("Enter")
    # the button at the end of the way is off, and what had the focus would have lost it
    assert page.evaluate("document.activeElement.className") == "stage"
    page.keyboard.press("End")
    assert "4 of 4" in page.locator("#steps-4").inner_text()
    slider = page.locator("#steps-4 input[type=range]")
    assert slider.get_attribute("aria-valuetext") == "4 of 4: ."


def test_a_link_opens_an_output(visit: Open, families_report: RenderedReport) -> None:
    page = visit(families_report.html, "step=steps-4:2:1:3")
    assert current(page, "steps-4") == "sits"
    assert current(page, "steps-3") == "the"
    for wrong in ("step=steps-4:99:1:1", "step=steps-4:1:1:999", "step=nothing:1:1:1"):
        page = visit(families_report.html, wrong)
        assert page.locator("#steps-4 [aria-current=step]").text_content() in ("the", ".")


def test_another_variant_and_example_can_be_chosen(
    visit: Open, families_report: RenderedReport
) -> None:
    page = visit(families_report.html, "steps-4")
    page.locator("#steps-4 select").nth(0).select_option("1")
    page.locator("#steps-4 select").nth(1).select_option("1")
    page.locator("#steps-4 input[type=range]").press("ArrowRight")
    assert current(page, "steps-4") == "dog"
    assert "2 of 2" in page.locator("#steps-4").inner_text()
    assert "Hund" in page.locator("#steps-4 .stage").inner_text()


def test_a_picture_says_in_words_where_weights_are(
    visit: Open, families_report: RenderedReport
) -> None:
    page = visit(families_report.html, "steps-1")
    said = page.locator("#steps-1 canvas").get_attribute("aria-label")
    assert re.match(r"Says \W?seven\W?, looks most", said)
    assert "looks most at row 1, column 1" in said


def test_hostile_words_stay_words_in_a_view(visit: Open, tmp_path: Path) -> None:
    from test_foreign_text import write_hostile

    page = visit(write_hostile(tmp_path / "hostile").html, "steps-1")
    assert page.locator("img").count() == 0
    assert "alert(1)" in page.locator("#steps-1").inner_text()


def test_a_page_of_steps_starts_with_the_viewer(
    visit: Open, families: Path, tmp_path: Path
) -> None:
    from reports.pictures import step_pages

    path = tmp_path / "steps.html"
    path.write_text(written(step_pages(read_folder(families))["steps-translation"]), "utf-8")
    page = visit(path)
    assert bottom(page, ".steps") <= WIDE[1]
    assert page.locator(".steps").bounding_box()["y"] < page.locator(".lead").bounding_box()["y"]
