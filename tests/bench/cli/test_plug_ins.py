"""Plug-ins on the command line."""

import json
import shlex

import pytest

from reports.folder import read_folder
from results.store import Store
from tests.bench.cli.command_lines import report_text


def test_a_plug_in_that_registers_nothing_says_so(call, window_plugin, tmp_path):
    idle = tmp_path / "idle.py"
    idle.write_text('"""Nothing yet."""\n')
    code, _, err = call("show", "sliding", "--plugin", idle)
    assert code == 2
    assert f"warning: {idle} registers nothing; decorate a class" in err
    for _ in range(2):  # the second time it is loaded already
        code, _, err = call("show", "sliding", "--plugin", window_plugin)
        assert (code, err) == (0, "")


@pytest.mark.slow
def test_a_plug_in_is_listed_planned_verified_and_run(call, window_plugin, tmp_path):
    assert len(window_plugin.read_text().splitlines()) <= 60
    plug = ["--plugin", window_plugin]
    rows = json.loads(call("list", *plug, "--json")[1])
    assert "sliding" in {row["variant"] for row in rows}
    (capabilities,) = json.loads(call("show", "sliding", *plug, "--json")[1])
    assert capabilities["file"] == str(window_plugin)
    cells = json.loads(
        call("plan", "--variants", "sliding", "--preset", "smoke", *plug, "--json")[1]
    )
    assert any(" @ sliding / " in cell["label"] for cell in cells["cells"])
    code, out, _ = call("verify", "sliding", *plug, "--jobs", 1, "--json")
    (certificate,) = json.loads(out).values()
    assert code == 0, certificate["failed"]
    assert certificate["green"]
    asked = ["run", "--variants", "sliding[window=2]", "--preset", "smoke", "--no-verify", *plug]
    code, _, _ = call(*asked, "--out", tmp_path / "run", "--inline", "--training", "adam[steps=3]")
    assert code == 0
    found = {(r.cell["kind"], r.status) for r in Store(tmp_path / "run").records()}
    assert found == {("quality", "ok"), ("speed", "ok")}
    for command in ("reproduce", "analyze"):  # both would miss names, and say so cell by cell
        code, _, err = call(command, tmp_path / "run", "--inline")
        assert code == 2
        assert f"was made with code of a plug-in; give --plugin {window_plugin}, too." in err
    assert "Beltagy et al., 2020" in report_text(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "spec.json").read_text())["plugin"] == [
        str(window_plugin)
    ]
    spec = ["run", "--spec", tmp_path / "run" / "spec.json", "--inline"]
    code, _, err = call(*spec)
    assert code == 2
    assert f"opens {window_plugin}; look at it, and add --trust if you trust it." in err
    assert call(*spec, "--trust")[0] == 0
    again = read_folder(tmp_path / "run")
    trained, *_ = again.of_kind("quality")
    command = shlex.split(again.command(trained.cell.label))
    assert f"--plugin {window_plugin}" in (tmp_path / "run" / "report.md").read_text()
    elsewhere = ["--out", tmp_path / "again", "--inline", "--no-verify", "--no-speed"]
    code, _, err = call(*command[3:], *elsewhere)
    assert code == 0, err
