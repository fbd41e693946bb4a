"""Notes on a run come first in its report, before the results that they are about."""

from pathlib import Path

from synthetic import catalog
from synthetic_run import quality_records, write_run

from reports.blocks import KNOWN_LIMITS
from reports.render import render

TASK = "copying[length=16]"
NOTE = "Starts of two variants were too large <b>here</b> | see *below*."


def files(path: Path, notes: list[str]) -> tuple[str, str, str]:
    """HTML page, short Markdown file and details of a run with such notes."""
    names = {**catalog(), "notes": notes}
    (task, *_) = names["tasks"]  # type: ignore[misc]  # a plain dictionary
    folder = write_run(
        path, records=[*quality_records([task], 2)], catalog_data=names, tasks=[task]
    )
    report = render(folder)
    found = (report.html, report.markdown, report.details)
    page, short, details = (file.read_text(encoding="utf-8") for file in found)
    return page, short, details


def test_notes_stand_before_the_choices_in_every_file(tmp_path: Path) -> None:
    page, short, details = files(tmp_path / "run", [NOTE, "Another."])
    assert "Starts of two variants were too large &lt;b&gt;here&lt;/b&gt; | see *below*." in page
    assert 0 < page.index(KNOWN_LIMITS) < page.index('class="choices"')
    box = (
        f"> [!WARNING]\n> **{KNOWN_LIMITS}**\n>\n"
        "> - Starts of two variants were too large &lt;b&gt;here&lt;/b&gt; \\| see \\*below\\*.\n"
        "> - Another.\n\n"
    )
    assert 0 < short.index(box) < short.index("### What to choose")
    assert box in details


def test_a_run_without_notes_has_no_such_box(tmp_path: Path) -> None:
    assert not any(KNOWN_LIMITS in text for text in files(tmp_path / "run", []))
