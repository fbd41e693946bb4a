"""What the page of a realistic run promises."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench.api.cell import RUN_KINDS
from reports.folder import read_folder
from reports.html import LISTS, REPORT, TEMPLATES
from reports.render import RenderedReport


class Structure(HTMLParser):
    """Collects ids, links and every address the page could load from."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, found in attrs:
            value = found or ""
            if name == "id":
                self.ids.append(value)
            if name in ("href", "xlink:href") and value.startswith("#"):
                self.links.add(value[1:])
            if name == "src" or (name in ("href", "xlink:href") and tag != "a"):
                self.loads.append(value)


@pytest.fixture(scope="module")
def lists(rendered: RenderedReport) -> str:
    """The second file, with what is too long for the first."""
    return (rendered.html.parent / LISTS).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def markdown(rendered: RenderedReport) -> str:
    """Both Markdown files, as one reads them one after the other."""
    files = (rendered.markdown, rendered.details)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def read(text: str) -> Structure:
    found = Structure()
    found.feed(text)
    return found


@pytest.fixture(scope="module")
def structure(page: str) -> Structure:
    return read(page)


def test_nothing_is_loaded_from_anywhere(page: str, structure: Structure) -> None:
    assert all(value.startswith(("#", "data:")) for value in structure.loads)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "default-src 'none'" in page


def test_ids_are_unique_and_every_inner_link_arrives(structure: Structure) -> None:
    assert len(structure.ids) == len(set(structure.ids))
    assert structure.links <= set(structure.ids)


def test_links_between_the_two_files_arrive(page: str, lists: str) -> None:
    ids = {REPORT: set(read(page).ids), LISTS: set(read(lists).ids)}
    for text, other in ((page, LISTS), (lists, REPORT)):
        found = set(re.findall(rf'href="{re.escape(other)}#([^"]+)"', text))
        assert found <= ids[other]
        assert f'href="{other}"' in text
    assert f'href="{LISTS}#cell-' in page
    assert len(read(lists).ids) == len(ids[LISTS])


def test_tables_of_what_no_figure_shows_stand_in_the_lists(page: str, lists: str) -> None:
    shown = re.findall(r'<table[^>]* id="(speed-table-\d+)"', page)
    others = re.findall(r'<table[^>]* id="(speed-table-\d+)"', lists)
    assert shown
    assert others
    assert not {*shown} & {*others}


def test_every_finished_cell_has_its_command(demo: Path, lists: str) -> None:
    for outcome in read_folder(demo).outcomes:
        assert f'id="cell-{outcome.record.id}"' in lists
        runs = outcome.cell.kind in RUN_KINDS
        assert (f"{outcome.cell.label}&#39;" in lists) == runs, "trials come from their study"


COMPARED = ("To baseline", "Effect size", "Against", "p Holm", "Detectable difference")
"""Columns whose dash has no reason of its own: what is not ranked is compared with nothing."""


def test_a_dash_tells_its_reason_on_hovering_and_a_legend_explains_it(page: str) -> None:
    ranked = re.findall(r'<table[^>]* id="ranked-\d+".*?</table>', page, flags=re.DOTALL)
    told, rows = set[str](), 0
    for table in ranked:
        heads = [
            re.sub("<.*?>", "", head).strip()
            for head in re.findall(r"<th\b.*?</th>", table.split("</thead>")[0], flags=re.DOTALL)
        ]
        for row in re.findall(r"<tr.*?</tr>", table):
            cells = re.findall(r"<t[dh]\b.*?</t[dh]>", row)
            if "mocha" not in row:
                continue
            rows += 1
            for head, cell in zip(heads, cells, strict=True):
                if re.search(r">\N{EM DASH}<", cell) and not head.startswith(COMPARED):
                    assert 'title="mocha' in cell, head
                    told.add(head.split()[0])
    assert rows >= 3
    assert told >= {"Rank", "Step", "Training", "Attention"}
    assert "linear_attention: no cross form for a source that is padded." in page


def test_a_red_certificate_is_shown_and_never_ranked(page: str, markdown: str) -> None:
    rows = [line for line in markdown.splitlines() if "[mocha]" in line]
    assert len(rows) == 3
    for row in rows:
        fields = [field.strip() for field in row.split("|")]
        assert fields[1].startswith("\N{EM DASH}")
        assert "±" in fields[3]
        assert all(field.startswith("\N{EM DASH}") for field in fields[6:10])
    assert "mocha is not ranked, its certificate is red: causality" in page


def test_controls_decoder_and_baseline_are_marked(markdown: str) -> None:
    for name, mark in (
        ("no_attention", "control"),
        ("lstmn", "decoder differs"),
        ("bahdanau", "baseline"),
    ):
        assert re.search(rf"\[{name}\]\(https://[^)]+\) \*\({mark}\)\*", markdown)


def test_the_aa_control_and_verdicts_are_shown(markdown: str) -> None:
    assert "A/A noise" in markdown
    row = next(line for line in markdown.splitlines() if line.startswith("| scaled_dot | 512"))
    assert "FAST" in row
    assert "±" in row


def test_cells_left_out_come_with_their_command(lists: str) -> None:
    assert "memory_net[hops=3]" in lists
    assert "no budget left: 120 s were asked, the plan needs 133 s." in lists


def test_markdown_tables_have_equal_columns_and_render(markdown: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    tokens = markdown_it.MarkdownIt("commonmark").enable("table").parse(markdown)
    tables = sum(token.type == "table_open" for token in tokens)
    starts = len(re.findall(r"^\| :?-", markdown, flags=re.MULTILINE))
    assert tables == starts > 10
    for block in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


def test_figures_of_the_markdown_twin_exist(demo: Path, markdown: str) -> None:
    links = re.findall(r"!\[[^\]]+\]\((figures/[^)]+)\)", markdown)
    assert {"figures/pareto-1.svg", "figures/learning-1.svg"} <= set(links)
    assert all((demo / link).is_file() for link in links)


def test_the_script_stays_small() -> None:
    assert (TEMPLATES / "report.js").stat().st_size < 8_000
    assert (TEMPLATES / "steps.js").stat().st_size < 9_000


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("script", ["report.js", "steps.js"])
def test_the_script_has_no_error_of_syntax(script: str) -> None:
    words = ["node", "--check", str(TEMPLATES / script)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_pages_without_weights_to_step_through_have_one_script(page: str) -> None:
    assert page.count("<script") == 1
