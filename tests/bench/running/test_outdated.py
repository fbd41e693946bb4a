"""A stored result of other code or other data: run again, or kept, marked and not ranked."""

import subprocess
import sys
from dataclasses import replace

import pytest

from bench.running.job import JobResult, Outcome
from reports.folder import read_folder
from results.pack import Pack, write_pack
from results.row import Row, Unmeasured
from results.store import Store


def records(session):
    return Store(session.store.folder).ledger().newest()


def edit_code(session, of):
    """Give the cells of one variant another hash."""
    usual = session._code.digest

    def digest(cell, made=()):
        return "edited" if cell.variant == of else usual(cell, made)

    session._code.digest = digest


def test_every_record_has_the_hash_of_its_code(start, made):
    session = start()
    session.train(made.quality)
    hashes = {record.cell["variant"]: record.code for record in records(session).values()}
    assert all(len(digest) == 12 for digest in hashes.values())
    assert len({*hashes.values()}) == len(hashes)


def test_cells_of_edited_code_run_again_and_no_others(start, made):
    start().train(made.quality)
    again = start()
    edit_code(again, "dot")
    again.train(made.quality)
    assert {job.cells[0].variant for job in again.executor.done} == {"dot"}
    assert {record.code for record in records(again).values()} >= {"edited"}
    assert again.train(made.quality) == [], "once in a session"


def test_keep_old_marks_them_and_the_mark_goes_when_the_code_is_back(start, made):
    start().train(made.quality)
    keeping = start(keep_old=True)
    edit_code(keeping, "dot")
    assert keeping.train(made.quality) == []
    assert keeping.tally.before["other_code"] == 1
    marked = {r.cell["variant"] for r in records(keeping).values() if r.status == "other_code"}
    assert marked == {"dot"}
    lines = len(Store(keeping.store.folder).ledger().records)
    same = start(keep_old=True)
    edit_code(same, "dot")
    same.train(made.quality)
    assert len(Store(same.store.folder).ledger().records) == lines, "marked once"
    back = start()
    assert back.train(made.quality) == []
    assert back.tally.before["other_code"] == 0
    assert {record.status for record in records(back).values()} == {"ok"}
    assert all(record.rows for record in records(back).values())


def failed(job):
    return JobResult(tuple(Outcome(c, "failed", "a mistake") for c in job.cells))


def test_keep_old_keeps_no_failure_of_other_code(start, made):
    start(failed).train(made.quality)
    keeping = start(keep_old=True)
    edit_code(keeping, "dot")
    keeping.train(made.quality)
    assert {job.cells[0].variant for job in keeping.executor.done} == {"dot"}


def partly(job):
    """Cells that lost one of their metrics."""
    spent = Unmeasured(metric="peak_memory_bytes", status="out_of_memory", detail="64 GiB more.")
    rows = (Row(metric="token_accuracy", value=0.5),)
    return JobResult(tuple(Outcome(c, "ok", rows=rows, unmeasured=(spent,)) for c in job.cells))


def test_keep_old_keeps_cells_that_lost_a_metric_with_what_they_lost(start, made, tmp_path):
    start(partly).train(made.quality)
    keeping = start(keep_old=True)
    edit_code(keeping, "dot")
    assert keeping.train(made.quality) == []
    (kept,) = (one for one in records(keeping).values() if one.status == "other_code")
    assert kept.cell["variant"] == "dot"
    assert [lost.metric for lost in kept.unmeasured] == ["peak_memory_bytes"]
    folder = read_folder(keeping.store.folder)
    (shown,) = (one for one in folder.outcomes if one.record == kept)
    assert shown.lost == [], "of other code nothing is missed"
    assert set(folder.frame[folder.frame["cell"] == kept.id]["status"]) == {
        "other_code",
        "out_of_memory",
    }
    pack = Pack(write_pack(keeping.store, tmp_path / "kept.parquet"))
    assert pack.ledger().newest() == records(keeping)
    back = start(keep_old=True)
    assert back.train(made.quality) == []
    assert records(back)[kept.id].status == "ok"
    assert records(back)[kept.id].unmeasured == kept.unmeasured
    again = start(keep_old=True, retry=frozenset({"out_of_memory"}))
    edit_code(again, "dot")
    again.train(made.quality)
    assert len(again.executor.done) == len(made.quality), "a lost metric is asked again"


def test_a_failure_is_asked_again_when_its_code_has_changed(start, made):
    first = start(lambda job: "failed" if job.cells[0].variant == "dot" else "ok")
    first.train(made.quality)
    same = start()
    same.train(made.quality)
    assert same.executor.done == []
    mended = start()
    edit_code(mended, "dot")
    mended.train(made.quality)
    assert {job.cells[0].variant for job in mended.executor.done} == {"dot"}
    assert {record.status for record in records(mended).values()} == {"ok"}


def test_a_cell_whose_data_have_changed_runs_again(start, made, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    (tmp_path / "test.txt").write_text("one\n")

    def answer(job):
        row = Row(metric="token_accuracy", value=0.5)
        found = Outcome(job.cells[0], "ok", rows=(row,), data={"data/test.txt": "0123456789ab"})
        return JobResult((found,))

    start(answer).train(made.quality)
    again = start()
    again.train(made.quality)
    assert len(again.executor.done) == len(made.quality)


def test_a_plugin_that_was_edited_while_it_ran_leaves_no_hash(start, made):
    def answer(job):
        row = Row(metric="token_accuracy", value=0.5)
        return JobResult((Outcome(job.cells[0], "ok", rows=(row,)),), plugins="another one")

    first = start(answer)
    first.train(made.quality)
    assert {record.code for record in records(first).values()} == {""}
    again = start()
    again.train(made.quality)
    assert len(again.executor.done) == len(made.quality)


def test_a_cell_whose_worker_had_imported_other_code_leaves_no_hash(start, made):
    first = start()
    usual = first.executor.result

    def result(job):
        (cell,) = job.cells
        here = first._code.digest(cell)
        return replace(usual(job), code={cell.id: "edited" if cell.variant == "dot" else here})

    first.executor.result = result
    first.train(made.quality)
    assert [r.cell["variant"] for r in records(first).values() if not r.code] == ["dot"]
    assert first.stream.getvalue().count("so some results (1) are of other code") == 1
    again = start()
    again.train(made.quality)
    assert {job.cells[0].variant for job in again.executor.done} == {"dot"}
    assert "other code" not in again.stream.getvalue()


def test_what_a_run_has_finished_itself_is_not_marked_later(start, made):
    def answer(job):
        row = Row(metric="token_accuracy", value=0.5)
        return JobResult((Outcome(job.cells[0], "ok", rows=(row,)),), plugins="another one")

    session = start(answer)
    session.train(made.quality)
    assert session.train(made.quality) == []
    assert {record.status for record in records(session).values()} == {"ok"}


def test_what_a_run_of_other_code_stores_meanwhile_is_run_again(start, made):
    session, rival = start(), start()
    edit_code(rival, "dot")
    rival.train(made.quality)
    session.train(made.quality)
    assert {job.cells[0].variant for job in session.executor.done} == {"dot"}
    newest = records(session).values()
    assert {(one.status, one.detail) for one in newest} == {("ok", "")}
    assert "edited" not in {one.code for one in newest}
    rival.train(made.quality)
    assert len(rival.executor.done) == len(made.quality), "each runs a cell once"


def test_what_a_run_of_the_same_code_has_just_failed_at_is_not_tried_again(start, made):
    session = start(retry=frozenset({"failed"}))
    rival = start(lambda job: "failed")
    rival.train(made.quality)
    session.train(made.quality)
    assert session.executor.done == []


PLUGIN = '''
"""A score with a constant, and a data file of its own."""

from pathlib import Path

from bench.api.registry import DefaultTask, register
from variants.scores.scaled_dot import ScaledDotScore

FACTOR = float((Path(__file__).parent / "factor.txt").read_text())


@register("score", "own_scale", default_task=DefaultTask(task="recall"))
class OwnScale(ScaledDotScore):
    """Scaled dot product times a number."""

    def energy(self, call, features):
        return super().energy(call, features) * FACTOR * 1.0
'''


@pytest.mark.slow
def test_an_edited_plugin_and_an_edited_data_file_are_run_again(tmp_path):
    plugin, factor = tmp_path / "own_scale.py", tmp_path / "factor.txt"
    plugin.write_text(PLUGIN)
    factor.write_text("1.0")

    def run(*words):
        command = ["run", "--variants", "own_scale", "--tasks", "recall", "--preset", "smoke"]
        command += ["--plugin", str(plugin), "--out", str(tmp_path / "run"), "--no-verify"]
        command += ["--fail-on", "none", "--no-speed", *words]
        done = subprocess.run(
            [sys.executable, "-m", "bench", *command], capture_output=True, text=True, check=True
        )
        return next(line for line in done.stdout.splitlines() if line.startswith("cells:"))

    assert run() == "cells: 2 ok"
    assert run() == "cells: none new, 2 were finished before"
    plugin.write_text(PLUGIN.replace("1.0", "2.0"))
    kept = "cells: none new, 2 were finished before; 1 of them of other code or data, kept and"
    assert run("--keep-old").startswith(kept)
    assert run() == "cells: 1 ok, 1 was finished before"
    plugin.write_text("# a comment\n" + PLUGIN.replace("1.0", "2.0"))
    assert run() == "cells: none new, 2 were finished before"
    factor.write_text("3.0")
    assert run() == "cells: 1 ok, 1 was finished before"
