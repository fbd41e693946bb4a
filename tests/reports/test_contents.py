"""The table of contents of details.md: every link leads to a heading of the file."""

import re
from pathlib import Path

import pytest
from synthetic_levels import DECIDED, TIED, written
from synthetic_run import speed_records, write_run

from reports.contents import heading_name
from reports.folder import read_folder
from reports.render import RenderedReport, document, render


def names(text: str) -> list[str]:
    """What GitHub calls the headings of a file, read from its text."""
    found: list[str] = []
    for line in re.sub(r"(?ms)^```.*?^```", "", text).splitlines():
        if heading := re.match(r"#{1,6} (.*)", line):
            shown = re.sub(r"\\(.)", r"\1", heading[1]).replace("&lt;", "<").replace("&gt;", ">")
            slug = heading_name(shown.replace("&amp;", "&"))
            repeated = sum(one == slug or re.fullmatch(rf"{slug}-\d+", one) is not None
                           for one in found)  # fmt: skip
            found.append(f"{slug}-{repeated}" if repeated else slug)
    return found


@pytest.mark.parametrize("run", ["rendered", "families_report"])
def test_every_link_leads_to_a_heading(run: str, request: pytest.FixtureRequest) -> None:
    report: RenderedReport = request.getfixturevalue(run)
    text = report.details.read_text(encoding="utf-8")
    links = re.findall(r"(?m)^ *- \[.*\]\(#(.*)\)$", text)
    assert links
    assert len(links) == len({*links})
    assert {*links} <= {*names(text)}


def test_every_comparison_has_a_line_at_the_top(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED})
    text = render(folder.path).details.read_text(encoding="utf-8")
    top = text[: text.index("\n## ")]
    assert "  - [copying: token accuracy](#copying-token-accuracy)" in top
    assert "  - [sorting: token accuracy](#sorting-token-accuracy)" in top


def test_a_run_that_only_timed_lists_no_section_of_training(tmp_path: Path) -> None:
    report = render(write_run(tmp_path / "run", records=speed_records()))
    listed = report.markdown.read_text(encoding="utf-8").rpartition("More in ")[2]
    assert "Speed and memory against length; " in listed
    for title in ("Ranking", "Quality against", "Learning curves", "Attention maps", "Sample"):
        assert title not in listed
    told = report.details.read_text(encoding="utf-8")
    assert "No quality cell has finished" not in told
    assert "Verdicts" not in told


def test_no_section_has_the_title_of_the_figure_on_the_first_screen(demo: Path) -> None:
    report = document(read_folder(demo))
    assert report.overview is not None
    assert not [one for one in report.sections if report.overview.title.startswith(one.title)]


def test_figures_of_an_earlier_report_go_and_files_of_others_stay(
    demo: Path, tmp_path: Path
) -> None:
    before = render(demo, out=tmp_path).markdown.parent / "figures"
    drawn = {path.name for path in before.iterdir()}
    (before / "mine.svg").write_text("<svg/>", encoding="utf-8")
    render(write_run(tmp_path / "other", records=speed_records()), out=tmp_path)
    left = {path.name for path in before.iterdir()}
    assert "mine.svg" in left
    assert "quality-cost.svg" in drawn - left
    shown = (tmp_path / "report.md").read_text() + (tmp_path / "details.md").read_text()
    assert {name for name in left if f"(figures/{name})" not in shown} == {"mine.svg"}
