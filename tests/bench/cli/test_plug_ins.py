"""Plug-ins on the command line."""

import json
import shlex
import sys

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


def test_a_spec_finds_its_plug_in_from_another_folder(
    call, window_plugin, tmp_path, monkeypatch, fresh_registry
):
    monkeypatch.chdir(window_plugin.parent)
    run = ["run", "--variants", "sliding", "--tasks", "offset", "--preset", "smoke", "--no-speed"]
    run += ["--no-verify", "--training", "adam[steps=2]", "--seeds", 1, "--plugin"]
    assert call(*run, window_plugin.name, "--out", tmp_path / "run", "--inline")[0] == 0
    # as in another process
    del sys.modules["bench_plugin_sliding_window"], fresh_registry._ENTRIES["mask"]["sliding"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    stored = tmp_path / "run" / "spec.json"
    code, out, err = call("run", "--spec", stored, "--trust", "--inline", "--json")
    assert (code, json.loads(out)["counts"]) == (0, {}), err
    catalog = json.loads((tmp_path / "run" / "catalog.json").read_text())
    assert catalog["plugins"] == json.loads(stored.read_text())["plugin"] == [str(window_plugin)]


def test_a_plug_in_beside_a_spec_is_where_the_one_of_its_name_lies_now(
    call, window_plugin, tmp_path
):
    asked = {"variants": "sliding", "tasks": "offset", "preset": "smoke", "speed": False}
    asked |= {"verify": False, "training": "adam[steps=2]", "seeds": 1}
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**asked, "plugin": ["plugs/sliding_window.py"]}))
    words = ["run", "--spec", spec, "--out", tmp_path / "run", "--inline"]
    code, _, err = call(*words, "--trust")
    assert code == 2
    assert "names the plug-in plugs/sliding_window.py, which is not here; add --plugin" in err
    assert "with the path of sliding_window.py." in err
    other = tmp_path / "other.py"
    other.write_text('"""Nothing."""\n')
    code, _, err = call(*words, "--plugin", window_plugin, "--plugin", other)
    assert code == 2
    assert f"{spec} names no plug-in other.py; --plugin beside --spec says where one" in err
    # whoever types it trusts it
    code, _, err = call(*words, "--plugin", window_plugin)
    assert code == 0, err
    stored = json.loads((tmp_path / "run" / "spec.json").read_text())
    assert stored["plugin"] == [str(window_plugin)]


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
    elsewhere = ["--out", tmp_path / "again", "--inline", "--no-verify"]
    code, _, err = call(*command[3:], *elsewhere)
    assert code == 0, err
