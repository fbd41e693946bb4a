"""The page in a real browser: silent, offline, sortable."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reports.render import RenderedReport

NAMES = ("chromium-headless-shell", "chromium", "/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
)
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium or chromium-headless-shell here"),
]


def visit(page: Path, view: str, profile: Path, *flags: str) -> tuple[str, str]:
    """Open a view of the page; give the document after its script ran, and the browser's log."""
    assert BROWSER is not None
    address = f"{page.as_uri()}#{view}"
    log = profile / "net.json"
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", f"--log-net-log={log}", *flags, address],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert asked_by_the_page(log) == []
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def asked_by_the_page(log: Path) -> list[str]:
    """Addresses that a page caused; what a browser asks for its own sake has no origin."""
    found = []
    for event in json.loads(log.read_text(encoding="utf-8"))["events"]:
        facts = event.get("params", {})
        address = str(facts.get("url", ""))
        if re.match("(https?|wss?|ftp):", address) and "initiator" in facts:
            found += [address] if facts["initiator"] != "not an origin" else []
    return found


def test_a_page_that_loads_something_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "loud.html"
    page.write_text('<img src="http://127.0.0.1:9/x.png" alt="x">', encoding="utf-8")
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1"):
        visit(page, "", tmp_path)


def rows(document: str, table: str) -> list[str]:
    found = re.search(rf'<table[^>]* id="{table}".*?</table>', document, flags=re.DOTALL)
    assert found, table
    return re.findall(r"<tr(?![^>]*hidden)[^>]*><td.*?</tr>", found.group(), flags=re.DOTALL)


def scores(document: str) -> list[float]:
    cells = [re.findall(r'data-sort="([^"]*)"', row)[1] for row in rows(document, "ranked-2")]
    return [float(cell) for cell in cells if cell]


def test_sorting_orders_a_table_both_ways(rendered: RenderedReport, tmp_path: Path) -> None:
    down, _ = visit(rendered.html, "sort=ranked-2:2:descending", tmp_path)
    assert scores(down) == sorted(scores(down), reverse=True)
    assert 'aria-sort="descending"' in down
    up, _ = visit(rendered.html, "sort=ranked-2:2:ascending", tmp_path)
    assert scores(up) == sorted(scores(up))


def test_missing_values_stay_last(rendered: RenderedReport, tmp_path: Path) -> None:
    for direction in ("ascending", "descending"):
        document, _ = visit(rendered.html, f"sort=ranked-2:0:{direction}", tmp_path)
        assert "mocha" in rows(document, "ranked-2")[-1]


def test_filtering_hides_other_rows(rendered: RenderedReport, tmp_path: Path) -> None:
    document, _ = visit(rendered.html, "filter=ranked-2:attention", tmp_path)
    assert len(rows(document, "ranked-2")) == 2
    assert "2 of 8 rows" in document


def test_the_dark_page_is_as_silent(rendered: RenderedReport, tmp_path: Path) -> None:
    document, _ = visit(
        rendered.html, "ranked", tmp_path, "--blink-settings=preferredColorScheme=0"
    )
    assert "<h1>" in document


def act(report: RenderedReport, script: str, folder: Path) -> str:
    """The document after a reader's clicks and keys, which a script of ours stands for."""
    page = report.html.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    changed = folder / "page.html"
    changed.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    return visit(changed, "", folder)[0]


def view(document: str, key: str) -> str:
    """Text of the view, without its choices."""
    found = re.search(rf'id="{key}".*?<script', document, flags=re.DOTALL)
    assert found
    return re.sub(r"<select>.*?</select>", "", found.group(), flags=re.DOTALL)


def current(document: str, key: str) -> str:
    return re.findall(r'aria-current="step"[^>]*>([^<]*)<', view(document, key))[0]


def test_a_view_starts_at_the_first_output(families_report: RenderedReport, tmp_path: Path) -> None:
    document, _ = visit(families_report.html, "steps", tmp_path)
    assert current(document, "steps-4") == "the"
    shown = view(document, "steps-4")
    assert "1 of 4" in shown
    assert re.search(r"looks most at die \(0\.\d\d\)", shown)
    assert 'class="gold"' in shown
    assert "Reference: the cat sits ." in shown
    assert not re.search(r'class="steps"[^>]*hidden', document)
    assert not re.search(r'<details class="still"[^>]* open', document)


def test_buttons_and_arrow_keys_step_through(
    families_report: RenderedReport, tmp_path: Path
) -> None:
    script = """
    const root = document.getElementById("steps-4");
    const press = (key) => root.querySelector(".stage").dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    root.querySelector('[aria-label="Next output"]').click();
    press("ArrowRight"); press("ArrowRight"); press("ArrowRight"); press("ArrowLeft");
    """
    document = act(families_report, script, tmp_path)
    assert current(document, "steps-4") == "sits"
    assert "3 of 4" in view(document, "steps-4")
    assert "looks most at sitzt" in view(document, "steps-4")
    assert current(document, "steps-3") == "the"


def test_default_task_and_end_lead_to_the_ends_and_keep_the_keyboard(
    families_report: RenderedReport, tmp_path: Path
) -> None:
    script = """
    const root = document.getElementById("steps-4");
    const [back, next] = ["Previous", "Next"].map((name) =>
      root.querySelector(`[aria-label="${name} output"]`));
    const press = (key) => root.querySelector(".stage").dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    press("End"); press("ArrowLeft"); press("DefaultTask"); press("ArrowRight");
    back.focus(); back.click();
    root.dataset.held = document.activeElement.className;
    press("End");
    """
    document = act(families_report, script, tmp_path)
    assert "4 of 4" in view(document, "steps-4")
    # the button at the end of the way is off, and what had the focus would have lost it
    assert 'data-held="stage"' in document
    assert 'aria-valuetext="4 of 4: ."' in document


def test_a_link_opens_an_output(families_report: RenderedReport, tmp_path: Path) -> None:
    document, _ = visit(families_report.html, "step=steps-4:2:1:3", tmp_path)
    assert current(document, "steps-4") == "sits"
    assert current(document, "steps-3") == "the"
    for wrong in ("step=steps-4:99:1:1", "step=steps-4:1:1:999", "step=nothing:1:1:1"):
        document, _ = visit(families_report.html, wrong, tmp_path)
        assert current(document, "steps-4") in ("the", ".")


def test_another_variant_and_example_can_be_chosen(
    families_report: RenderedReport, tmp_path: Path
) -> None:
    script = """
    const [variant, example] = document.querySelectorAll("#steps-4 select");
    for (const [select, at] of [[variant, 1], [example, 1]]) {
      select.value = at;
      select.dispatchEvent(new Event("change"));
    }
    const slider = document.querySelector("#steps-4 input");
    slider.value = 1;
    slider.dispatchEvent(new Event("input"));
    """
    document = act(families_report, script, tmp_path)
    assert current(document, "steps-4") == "dog"
    assert "2 of 2" in view(document, "steps-4")
    assert "Hund" in view(document, "steps-4")


def test_a_picture_says_in_words_where_weights_are(
    families_report: RenderedReport, tmp_path: Path
) -> None:
    document, _ = visit(families_report.html, "steps", tmp_path)
    shown = view(document, "steps-1")
    assert re.search(r"<canvas[^>]*aria-label=\"Says “seven”, looks most at row 1, column 1", shown)


def test_hostile_words_stay_words_in_a_view(tmp_path: Path) -> None:
    from test_foreign_text import write_hostile

    report = write_hostile(tmp_path / "hostile")
    document, _ = visit(report.html, "steps", tmp_path)
    assert "<img" not in document
    assert "alert(1)" in view(document, "steps-1")
