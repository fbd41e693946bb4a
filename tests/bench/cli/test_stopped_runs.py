"""Runs that the disk stops: a sentence, an exit code, and no finished cell is lost."""

import errno
import os
import shutil
import signal

import pytest

from bench.api.cache import CACHE_VARIABLE
from bench.api.errors import InvalidConfig
from bench.cli.main import cli
from bench.cli.sentences import ended_with_a_sentence
from bench.running.session import Session
from results.ledger import LedgerWriter
from results.store import Store
from tests.bench.cli.command_lines import with_others

ASKED = ["run", "--variants", "dot,general", "--tasks", "after_marker", "--preset", "smoke"]
ASKED += ["--training", "adam[steps=1]", "--no-speed", "--no-verify", "--inline"]


def run(*more):
    words = with_others(ASKED, *more)
    return ended_with_a_sentence(lambda: cli(words, standalone_mode=False))


@pytest.mark.parametrize("stop", ["full disk", "deleted folder"])
def test_a_disk_that_takes_no_more_is_a_sentence_and_keeps_what_is_there(
    tmp_path, monkeypatch, capsys, fresh_registry, stop
):
    folder, append, count = tmp_path / "run", LedgerWriter.append, []

    def appended(self, record):
        count.append(record)
        if len(count) == 2 and stop == "full disk":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "ledger"))
        if len(count) == 2:
            shutil.rmtree(folder)
        append(self, record)

    monkeypatch.setattr(LedgerWriter, "append", appended)
    code = run("--out", folder)
    err = capsys.readouterr().err
    assert code == 1
    assert "Traceback" not in err
    assert "go on with: python -m bench" in err
    if stop == "full disk":
        assert "No space left on device" in err
        assert "1 finished cell is saved in" in err
        monkeypatch.setattr(LedgerWriter, "append", append)
        assert run("--out", folder) == 0
        assert {record.attempt for record in Store(folder).records()} == {1}
    else:
        assert "the ledger file was deleted" in err or "No such file" in err


def test_a_folder_in_which_nothing_can_be_made_is_a_sentence(capsys):
    assert run("--out", "/proc/nothing/run") == 2
    assert "cannot write to /proc/nothing/run" in capsys.readouterr().err


def test_a_cache_that_takes_nothing_is_one_warning_of_a_run_that_succeeds(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv(CACHE_VARIABLE, "/dev/null/cache")
    assert run("--out", tmp_path / "run") == 0
    assert capsys.readouterr().err.count("nothing can be kept in the cache") == 1


def test_a_log_that_takes_nothing_costs_no_finished_cell(tmp_path, trouble_plugin, capsys):
    folder = tmp_path / "run"
    (folder / "ledger").mkdir(parents=True)
    (folder / "log.txt").mkdir()
    words = ["--variants", "raiser", "--plugin", trouble_plugin]
    assert run("--out", folder, *words) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert "failed" in {record.status for record in Store(folder).records()}


def test_signals_are_what_they_were_after_a_run_that_ends_by_itself(
    tmp_path, monkeypatch, capsys, fresh_registry
):
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    assert run("--out", tmp_path / "whole") == 0
    assert {one: signal.getsignal(one) for one in before} == before

    def broken(*_):
        raise InvalidConfig("broken on purpose.")

    monkeypatch.setattr(Session, "train", broken)
    assert run("--out", tmp_path / "broken") == 2
    assert "broken on purpose" in capsys.readouterr().err
    assert {one: signal.getsignal(one) for one in before} == before


def test_a_run_that_is_stopped_before_it_asks_for_a_cell_has_marked_what_it_reuses_of_other_code(
    tmp_path, monkeypatch, capsys, fresh_registry
):
    """Certificates are computed first, and times are taken last."""
    source, folder = tmp_path / "source", tmp_path / "run"
    assert run("--out", source) == 0
    (line,) = (one for one in Store(source).records() if one.cell["variant"] == "dot")
    (file,) = (source / "ledger").glob("*.jsonl")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(line.code, "0" * len(line.code)), encoding="utf-8")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Session, "train", full)
        for _ in range(2):  # the same command goes on, and takes nothing twice
            assert run("--out", folder, "--reuse", source) == 1
            found = {one.cell["variant"]: one.status for one in Store(folder).records()}
            assert found == {"dot": "other_code", "general": "ok", "scaled_dot": "ok"}
    assert run("--out", folder, "--reuse", source) == 0
    after = {one.cell["variant"]: one for one in Store(folder).records()}
    assert {one.status for one in after.values()} == {"ok"}
    assert after["dot"].code == line.code, "it was trained again"
    assert after["dot"].finished >= line.finished
