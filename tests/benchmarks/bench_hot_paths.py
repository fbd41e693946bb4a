"""Our own hot paths under pytest-benchmark; not collected by `make test`.

python -m pytest tests/benchmarks/bench_hot_paths.py
python -m pytest tests/benchmarks/bench_hot_paths.py --benchmark-compare
"""

from dataclasses import asdict

import pytest
import torch

import variants
from bench.api.cell import Cell
from bench.api.loading import load_package
from bench.running.plan import plan
from bench.running.request import Request
from results import load
from results.row import Record, Row
from results.store import Store

torch.set_num_threads(1)
load_package("variants")
load_package("tasks")


def record(seed: int) -> Record:
    cell = Cell(
        kind="quality",
        task="copying",
        backbone="rnn",
        variant="dot",
        slot="cross",
        protocol="adam",
        seed=seed,
    )
    rows = tuple(
        Row(metric="token_accuracy", value=step / 100, axis="step", x=step, split="validation")
        for step in range(20)
    )
    return Record(cell=asdict(cell), id=cell.id, status="ok", environment="here", rows=rows)


@pytest.mark.parametrize("selector", ["scaled_dot", "additive", "tu_coverage", "raffel_monotonic"])
def test_one_decode_step_of_attention(benchmark, selector):
    slot = variants.build(selector, dim=128, regime="cross")
    memory = slot.prepare(torch.randn(64, 20, 128))
    query = torch.randn(64, 1, 128)
    state = slot.start(memory, query)
    benchmark.extra_info.update(variant=selector, shape="B64 L1 S20 D128")
    with torch.no_grad():
        benchmark(slot.attend, query, memory, state)


def test_planning_the_default_run(benchmark):
    found = benchmark(plan, Request())
    assert len(found.cells) > 100


def test_appending_one_finished_cell(benchmark, tmp_path):
    store = Store.create(tmp_path / "run")
    benchmark(store.append, record(0))


def test_loading_two_hundred_cells(benchmark, tmp_path):
    store = Store.create(tmp_path / "run")
    for seed in range(200):
        store.append(record(seed))
    frame = benchmark(load, tmp_path / "run").rows
    assert len(frame) == 4000
