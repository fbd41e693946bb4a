"""What the harness costs over a bare loop of the same model: interleaved rounds, CPU time.

    python tests/benchmarks/overhead.py --rounds 20

Copying with GRU 128 and batches of 64, one thread. Both sides get the same symbol lengths from the
same seed and take the same number of steps a round; each round visits the two in random order. The
interval is a t interval of the log ratio over rounds.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Callable

import bare_copy
import numpy as np
import torch

from bench.api.cell import Cell
from bench.api.loading import load_package
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.protocol import read_protocol
from bench.training.training import start_training
from results.statistics import ratio_interval

VARIANTS = {
    "dot": "dot[decoder=luong]",
    "bahdanau": "additive[width=128,decoder=bahdanau]",
}
TASK = "transduction[rule=copy,vocab=16,min_length=1,max_length=20,beyond=21]"
BACKBONE = "rnn_seq2seq[hidden=128,embedding=64]"


def harness_cell(model: str) -> Cell:
    """The cell that trains the same model."""
    request = Request(backbone=BACKBONE, preset="standard", training="adam[batch=64,steps=100000]")
    return quality_cell(request, resolve(VARIANTS[model]), DefaultTask(task=TASK), 0).cell


def harness_step(model: str) -> Callable[[], object]:
    """One training step of the harness: draw a batch, update, keep the accounts."""
    cell = harness_cell(model)
    torch.manual_seed(0)
    built = assemble(cell, None)
    protocol = read_protocol(parse(cell.protocol))
    run = start_training(built.system, protocol, 0, time.process_time)
    batches = built.task.training(protocol.batch, torch.Generator().manual_seed(0))
    return lambda: run.update(next(batches))


def bare_step(model: str) -> Callable[[], object]:
    """One training step of the bare loop, its loss read as the harness reads it."""
    torch.manual_seed(0)
    module = bare_copy.build(model)
    optimizer = bare_copy.build_optimizer(module)
    rng = torch.Generator().manual_seed(0)

    def step() -> float:
        batch = bare_copy.draw(bare_copy.BATCH, rng)
        return float(bare_copy.step(module, optimizer, batch))

    return step


def measure(model: str, rounds: int, steps: int) -> dict[str, object]:
    """CPU milliseconds of a step on both sides, and their ratio with its interval."""
    sides = {"harness": harness_step(model), "bare": bare_step(model)}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for step in sides.values():
        for _ in range(10):
            step()
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(sorted(sides), 2):
            start = time.process_time()
            for _ in range(steps):
                sides[name]()
            times[name].append(1000 * (time.process_time() - start) / steps)
    ratio = ratio_interval(np.log(np.divide(times["harness"], times["bare"])))
    return {
        "model": model,
        "harness_ms": round(sorted(times["harness"])[rounds // 2], 2),
        "bare_ms": round(sorted(times["bare"])[rounds // 2], 2),
        "ratio": round(ratio.estimate, 4),
        "low": round(ratio.low, 4),
        "high": round(ratio.high, 4),
        "rounds": rounds,
        "steps": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Harness overhead over a bare loop.")
    parser.add_argument("--model", choices=sorted(VARIANTS), action="append")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20, help="Steps of each side in a round.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    load_package("variants")
    load_package("tasks")
    for model in options.model or sorted(VARIANTS):
        found = measure(model, options.rounds, options.steps)
        assert math.isfinite(float(str(found["ratio"]))), "rounds gave no ratio"
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
