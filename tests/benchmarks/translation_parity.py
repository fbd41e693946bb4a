"""Our harness beside the bare loop on Multi30k de-en: tokens/s and BLEU in one run.

    python tests/benchmarks/translation_parity.py --model dot --cpu-seconds 240

The two sides take turns, ten steps each, until both have used their CPU seconds for training, so
that a machine whose speed drifts is equally unkind to both. Then both translate the test set.
"""

import argparse
import json
import random
import time

import bare_translation as bare
import numpy as np
import torch

from bench.api.loading import load_package
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate
from bench.training.protocol import read_protocol
from bench.training.training import start_training
from results.statistics import ratio_interval

VARIANTS = {
    "none": "none_state",
    "dot": "dot[decoder=luong]",
    "bahdanau": "bahdanau[score=additive[width=256]]",
}
TURN = 10
"""Steps of one side before it is the other's turn."""


class Harness:
    """The same setting as `bare_translation`, as a cell of ours."""

    def __init__(self, model: str, seed: int) -> None:
        request = Request(preset="standard", first_seed=seed)
        planned = quality_cell(
            request, resolve(VARIANTS[model]), DefaultTask(task="translation"), seed
        )
        torch.manual_seed(seed)
        self.built = assemble(planned.cell, None)
        self.protocol = read_protocol(planned.cell.protocol)
        self.run = start_training(self.built.system, self.protocol, seed, time.process_time)
        generator = torch.Generator().manual_seed(seed)
        self.batches = self.built.task.training(self.protocol.batch, generator)

    def turn(self) -> tuple[float, int]:
        """Take some steps; CPU seconds (drawing batches included) and target tokens."""
        before, start = self.run.tokens, time.process_time()
        for _ in range(TURN):
            self.run.update(next(self.batches))
        return time.process_time() - start, self.run.tokens - before

    def bleu(self) -> float:
        """Score the test set."""
        there, device = self.built.system.there, torch.device("cpu")
        found = evaluate(self.built.task, there, "test", device, time.process_time)
        return float(found.value("bleu") or 0.0)


class Bare:
    """The loop in plain modules."""

    def __init__(self, model: str, seed: int) -> None:
        self.data = bare.Data(None, 1000)
        torch.manual_seed(seed)
        module = bare.MODELS[model](self.data.german.size, self.data.english.size)
        self.trainer = bare.Trainer(module, self.data, seed)
        module.train()

    def turn(self) -> tuple[float, int]:
        """Take some steps."""
        before, start = self.trainer.tokens, time.process_time()
        for _ in range(TURN):
            self.trainer.step()
        return time.process_time() - start, self.trainer.tokens - before

    def bleu(self) -> float:
        """Score the test set."""
        return float(self.trainer.bleu())


def main() -> None:
    parser = argparse.ArgumentParser(description="Harness and bare loop on Multi30k.")
    parser.add_argument("--model", choices=sorted(VARIANTS), default="dot")
    parser.add_argument("--cpu-seconds", type=float, default=240.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    load_package("variants")
    load_package("tasks")
    sides = {
        "harness": Harness(options.model, options.seed),
        "bare": Bare(options.model, options.seed),
    }
    used = dict.fromkeys(sides, 0.0)
    tokens = dict.fromkeys(sides, 0)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    order = random.Random(options.seed)
    while min(used.values()) < options.cpu_seconds:
        for name in order.sample(sorted(sides), 2):
            seconds, count = sides[name].turn()
            used[name] += seconds
            tokens[name] += count
            rates[name].append(count / seconds)
    ratio = ratio_interval(np.log(np.divide(rates["harness"], rates["bare"])))
    print(
        json.dumps(
            {
                "model": options.model,
                "seed": options.seed,
                "cpu_seconds": {name: round(value, 1) for name, value in used.items()},
                "steps": len(rates["bare"]) * TURN,
                "tokens_per_s": {name: round(tokens[name] / used[name]) for name in sides},
                "speed_ratio": [round(x, 4) for x in (ratio.estimate, ratio.low, ratio.high)],
                "bleu": {name: round(side.bleu(), 2) for name, side in sides.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
