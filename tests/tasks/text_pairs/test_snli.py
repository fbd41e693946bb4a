"""SNLI as a task, on an invented directory, and learned on the real one where it is."""

import os
import random
import runpy
from pathlib import Path

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.text_pairs.snli import Snli, SnliConfig

SMALL = Path(__file__).parents[1] / "small_data" / "snli.py"
REAL = os.environ.get("BENCH_DATA_DIR", "")


@pytest.fixture
def directory(tmp_path) -> Path:
    runpy.run_path(str(SMALL))["write"](tmp_path, random.Random(0))
    return tmp_path


def test_a_word_of_the_test_alone_is_unknown(directory):
    import gzip

    path = directory / "snli" / "esnli" / "s1.test.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    path.write_bytes(gzip.compress("\n".join(["a zeppelin", *lines[1:]]).encode()))
    task = Snli(SnliConfig(), 0, directory)
    assert "zeppelin" not in task.words.words
    assert any(row.premise[-1] == 3 for row in task.rows("test"))


def test_minimal_pairs_of_both_sides_stand_behind_the_test(directory):
    task = Snli(SnliConfig(least=1), 0, directory)
    plain, changed = task.evaluation("test")
    assert (len(plain.targets), len(changed.targets)) == (40, 24)
    assert "snli from the directory" in task.notes["data"]
    with pytest.raises(InvalidConfig, match="snli: train"):
        SnliConfig(train=-1)


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory with snli")
def test_real_pairs_are_learned_beyond_the_majority():
    cell = quality_cell(
        Request(preset="quick", training="adam[lr=0.003,steps=250,evaluate_every=250]"),
        resolve("scaled_dot"),
        DefaultTask(task="snli[test=1000,validate=100]"),
        0,
    ).cell
    with torch.random.fork_rng():
        rows = train_cell(cell).rows
    found = [r for r in rows if r.metric == "label_accuracy" and r.split == "test"]
    (value,) = [r.value for r in found if not r.axis and not r.baseline]
    (majority,) = [r.value for r in found if r.baseline == "majority"]
    assert value > majority + 0.08
