"""A report of somebody else's folder writes inside it alone."""

import shutil

import pytest

from bench.api.errors import InvalidConfig
from reports.export import export_tables
from reports.render import render
from reports.written_files import own_folder, write_file


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    outside, link = tmp_path / "outside.md", tmp_path / "report.md"
    outside.write_text("precious")
    link.symlink_to(outside)
    write_file(link, "new")
    assert outside.read_text() == "precious"
    assert link.read_text() == "new"
    assert not link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"outside.md", "report.md"}


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "figures").symlink_to(tmp_path)
    with pytest.raises(InvalidConfig, match="is a link, and a report is not written through one"):
        own_folder(tmp_path / "figures")


def test_a_report_of_a_folder_with_links_writes_inside_it(demo, tmp_path):
    run_folder, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(demo, run_folder)
    outside.mkdir()
    for name in ("report.html", "report.md", "details.md", "details.html"):
        (outside / name).write_text("precious")
        (run_folder / name).unlink(missing_ok=True)
        (run_folder / name).symlink_to(outside / name)
    render(run_folder)
    assert {path.read_text() for path in outside.iterdir()} == {"precious"}
    (run_folder / "tables").symlink_to(outside)
    with pytest.raises(InvalidConfig, match="tables is a link"):
        export_tables(run_folder, run_folder / "tables")
