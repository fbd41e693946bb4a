"""Training that is killed and asked again: the same bits, and no old data."""

from dataclasses import replace

import pytest
import torch

from bench.training import checkpoint as module
from bench.training.checkpoint import Checkpoint
from bench.training.quality import train_cell
from tasks.translation.transduction import Transduction
from tests.bench.training.test_train_cell import untimed

PROTOCOL = "adam[steps=8,batch=8,evaluate_every=2,patience=2,halvings=1]"
DROPOUT = "rnn_seq2seq[hidden=16,embedding=8,dropout=0.4]"


class Killed(BaseException):
    """Stands for a signal that nothing catches."""


@pytest.fixture
def kill(tmp_path):
    """Train a cell until a share of its budget, into a checkpoint at every validation."""

    def train(cell, share=0.6, **more) -> Checkpoint:
        def die(done):
            if done > share:
                raise Killed

        kept = Checkpoint(tmp_path / "checkpoints" / "one.pt", every_s=0.0)
        with pytest.raises(Killed):
            train_cell(cell, progress=die, checkpoint=kept, **more)
        return Checkpoint(kept.path, every_s=0.0)

    return train


@pytest.mark.parametrize(
    ("variant", "backbone"),
    [("additive", DROPOUT), ("hard_reinforce", DROPOUT), ("hard_gumbel_st", None)],
)
def test_training_goes_on_and_ends_in_the_same_bits(variant, backbone, smoke, kill):
    cell = smoke(variant, backbone=backbone, protocol=PROTOCOL)
    whole, kept = train_cell(cell), kill(cell)
    steps = []
    again = train_cell(cell, progress=lambda _: steps.append(1), checkpoint=kept)
    assert len(steps) == 4, "four updates of eight were done before"
    assert untimed(again.rows) == untimed(whole.rows)
    for one, two in zip(again.system.parameters(), whole.system.parameters(), strict=True):
        assert torch.equal(one, two)


def test_the_clocks_go_on_too(smoke, kill, clock):
    cell, ticking = smoke(protocol=PROTOCOL), type(clock)
    whole = train_cell(cell, clock=ticking())
    kept = kill(cell, clock=ticking())
    done = train_cell(cell, checkpoint=kept, clock=ticking())
    places = [r.x for r in done.rows if (r.metric, r.axis) == ("token_accuracy", "cpu_s")]
    assert places == sorted(places)
    assert len(places) == 4
    # a step takes one tick, so that tokens and steps of both parts must be counted
    timed = ("train_tokens_per_s", "train_step_time_ms", "train_cpu_s")
    one, two = ({r.metric: r.value for r in d.rows if r.metric in timed} for d in (whole, done))
    assert set(one) == set(timed)
    assert two == pytest.approx(one)


def test_data_that_have_changed_begin_anew(smoke, kill, monkeypatch):
    cell = smoke(protocol=PROTOCOL)
    kept = kill(cell)
    honest = Transduction.training

    def other(self, batch_size, generator):
        generator.manual_seed(99)
        return honest(self, batch_size, generator)

    monkeypatch.setattr(Transduction, "training", other)
    steps = []
    done = train_cell(cell, progress=lambda _: steps.append(1), checkpoint=kept)
    assert len(steps) == 8
    assert untimed(done.rows) == untimed(train_cell(cell).rows)


def test_what_begins_anew_with_other_data_is_kept_as_well(smoke, kill, monkeypatch):
    cell = smoke(protocol=PROTOCOL)
    kill(cell, share=0.3)
    honest = Transduction.training

    def other(self, batch_size, generator):
        generator.manual_seed(99)
        return honest(self, batch_size, generator)

    monkeypatch.setattr(Transduction, "training", other)
    kept, steps = kill(cell), []
    done = train_cell(cell, progress=lambda _: steps.append(1), checkpoint=kept)
    assert len(steps) == 4, "four updates of eight were done with the other data"
    assert untimed(done.rows) == untimed(train_cell(cell).rows)


@pytest.mark.parametrize("content", [b"", b"half a file", None])
def test_a_damaged_file_is_as_good_as_none(content, smoke, kill):
    cell = smoke(protocol=PROTOCOL)
    kept = kill(cell)
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    steps = []
    done = train_cell(cell, progress=lambda _: steps.append(1), checkpoint=kept)
    assert len(steps) == 8
    assert untimed(done.rows) == untimed(train_cell(cell).rows)


def test_short_trainings_write_nothing(smoke, tmp_path):
    path = tmp_path / "none" / "one.pt"
    train_cell(smoke(), checkpoint=Checkpoint(path))
    assert not path.parent.exists()


def test_a_file_is_written_at_most_once_a_minute(smoke, tmp_path, monkeypatch):
    now = iter(range(0, 1000, 25))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(now)))
    written = []
    honest = torch.save
    monkeypatch.setattr(module.torch, "save", lambda *a: written.append(1) or honest(*a))
    cell = smoke(protocol="adam[steps=8,batch=8,evaluate_every=1]")
    train_cell(cell, checkpoint=Checkpoint(tmp_path / "one.pt", _last=0.0))
    assert len(written) == 2, "of seven validations before the last"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("failed writing file")]
)
def test_what_cannot_be_written_ends_no_training_and_the_last_whole_file_stays(
    error, smoke, tmp_path, monkeypatch
):
    honest, tried = torch.save, []

    def save(content, path):
        tried.append(path)
        if len(tried) > 1:
            path.write_bytes(b"half of it")
            raise error
        honest(content, path)

    monkeypatch.setattr(module.torch, "save", save)
    cell = smoke(protocol=PROTOCOL)
    kept = Checkpoint(tmp_path / "one.pt", every_s=0.0)
    with pytest.warns(RuntimeWarning, match="this training is not kept in") as told:
        done = train_cell(cell, checkpoint=kept)
    assert len(tried) == 3
    assert len(told) == 1, "once, however often it was tried"
    assert untimed(done.rows) == untimed(train_cell(cell).rows)
    assert [one.name for one in tmp_path.iterdir()] == ["one.pt"]
    steps = []
    monkeypatch.setattr(module.torch, "save", honest)
    train_cell(cell, progress=lambda _: steps.append(1), checkpoint=Checkpoint(kept.path))
    assert len(steps) == 6, "two updates of eight were kept"


def test_another_cell_reads_another_file(smoke, kill):
    """Names of files are the caller's; a file of another network is never half taken."""
    kept = kill(smoke(protocol=PROTOCOL))
    other = replace(smoke(protocol=PROTOCOL), backbone="rnn_seq2seq[hidden=24,embedding=8]")
    with pytest.raises(RuntimeError, match="size mismatch"):
        train_cell(other, checkpoint=kept)
