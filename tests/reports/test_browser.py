"""The page in a real browser: silent, offline, sortable."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reports.render import RenderedReport

NAMES = ("chromium-headless-shell", "chromium", "/usr/bin/chromium-headless-shell")
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
    asked = re.findall(r'"url":"((?:https?|wss?|ftp):[^"]+)"', log.read_text(encoding="utf-8"))
    assert asked == []
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout, done.stderr


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
