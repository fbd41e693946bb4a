"""A training that was killed goes on only under the code, the data and the machine of before."""

from dataclasses import replace

import pytest

from bench.api.cell import Cell
from bench.running import code_of_cells, runner
from bench.running.code_of_cells import CodeOfCells
from bench.running.job import Job
from bench.running.runner import run_job
from bench.running.source_code import SourceCode
from bench.running.used import Used
from bench.training.checkpoint import Checkpoint
from tests.bench.running.test_code_of_cells import edited

CELL = Cell(
    kind="quality",
    task="transduction[evaluate=16,rule=reverse]",
    backbone="rnn_seq2seq[embedding=8,hidden=16]",
    variant="dot",
    slot="cross",
    protocol="adam[batch=8,evaluate_every=2,steps=8]",
)


class Killed(BaseException):
    """Stands for a signal that nothing catches."""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A training that writes its file at every validation."""
    monkeypatch.setattr(
        runner, "Checkpoint", lambda path, facts: Checkpoint(path, every_s=0.0, facts=facts)
    )
    path = tmp_path / "run" / "one.pt"
    return Job(kind="quality", label="", cells=(CELL,), checkpoint=str(path), machine="this one")


@pytest.fixture
def kill(job, tmp_path, monkeypatch):
    """Kill the training after four of eight updates; it reads a file of the data directory."""
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path / "data"))
    words = tmp_path / "data" / "words.txt"
    words.parent.mkdir()
    words.write_text("one two")

    def killed(share):
        words.read_text()
        if share > 0.6:
            raise Killed

    with pytest.raises(Killed):
        run_job(job, None, killed)
    return words


def updates(job):
    """How many updates a training takes from where it is."""
    steps = []
    result = run_job(job, None, steps.append)
    assert result.outcomes[0].status == "ok"
    return len(steps)


@pytest.mark.usefixtures("kill")
def test_a_training_of_the_same_code_goes_on(job):
    assert updates(job) == 4


@pytest.mark.usefixtures("kill")
def test_a_part_that_the_cell_does_not_name_has_been_edited(job, monkeypatch):
    made = Checkpoint(runner.Path(job.checkpoint)).stored_facts()["made"]
    source = SourceCode()
    other = edited(source, "variants.heads.raw", "return ", "return 2 * ")
    monkeypatch.setattr(code_of_cells, "loaded_source", lambda: other)
    now = CodeOfCells()
    monkeypatch.setattr(code_of_cells, "loaded_source", lambda: source)
    before = CodeOfCells()
    assert now.digest(CELL) == before.digest(CELL), "a name of the cell would notice nothing"
    assert now.digest(CELL, made) != before.digest(CELL, made)
    monkeypatch.setattr(code_of_cells, "loaded_source", lambda: other)
    assert updates(job) == 8


def test_a_data_file_has_changed(job, kill):
    kill.write_text("one three")
    assert updates(job) == 8


@pytest.mark.usefixtures("kill")
def test_another_machine_begins_anew(job):
    assert updates(replace(job, machine="another one")) == 8


@pytest.mark.usefixtures("kill")
def test_a_file_that_tells_nothing_is_not_gone_on_from(job, monkeypatch):
    monkeypatch.setattr(Checkpoint, "stored_facts", lambda self: {})
    assert updates(job) == 8


def test_a_run_folder_beside_the_data_is_no_data(job, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    path = tmp_path / "run" / "one.pt"
    path.parent.mkdir()
    path.write_bytes(b"half a training")
    (tmp_path / "words.txt").write_text("one two")
    used = Used(job, set(), {str(path), str(tmp_path / "words.txt")})
    assert [*used.data()] == ["data/words.txt"]
