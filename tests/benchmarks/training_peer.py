"""Training speed beside JoeyNMT: the same model on the same batches of Multi30k, in one run.

    python3 -m venv PEER && PEER/bin/pip install -r tests/benchmarks/peers/joeynmt.txt
    python tests/benchmarks/training_peer.py PEER/bin/python --model rnn --rounds 12

The sides are two processes of one thread that take turns in random order, some steps each, on the
same batches. Tokens are target words with the end of the sentence, counted here; time is CPU time.
Ours keeps freed memory, as the workers of a run do; `--hand-back` leaves that out.
Both are GRU networks with Bahdanau's attention, or transformers, of the same widths, layers and
heads; decoders differ in detail (JoeyNMT feeds the attentional vector, ours the context).
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from bench.api.batch import Batch
from bench.api.loading import load_package
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.allocator import keep_freed_memory
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.protocol import read_protocol
from bench.training.training import start_training
from results.statistics import ratio_interval

WORKER = Path(__file__).parent / "peers" / "joeynmt_worker.py"
BATCH, LR = 64, 0.002
OPTIONS = {
    "rnn": {"width": 256, "embedding": 192, "dropout": 0.2},
    "transformer": {"width": 128, "layers": 2, "heads": 4, "dropout": 0.1},
}
OURS = {
    "rnn": ("bahdanau", "rnn_seq2seq[hidden=256,embedding=192,dropout=0.2{more}]"),
    "transformer": (
        "scaled_dot",
        "transformer_seq2seq[width=128,layers=2,heads=4,dropout=0.1{more}]",
    ),
}


class Harness:
    """A cell of ours on fixed batches."""

    def __init__(self, model: str, more: str, count: int) -> None:
        variant, backbone = OURS[model]
        request = Request(
            preset="quick",
            backbone=backbone.format(more=more),
            training=f"adam[lr={LR},batch={BATCH},steps=1000000,evaluate_every=1000000]",
        )
        planned = quality_cell(
            request, resolve(variant), DefaultTask(task="translation[vocab=3000]"), seed=0
        )
        torch.manual_seed(0)
        self.built = assemble(planned.cell, None)
        protocol = read_protocol(planned.cell.protocol)
        stream = self.built.task.training(BATCH, torch.Generator().manual_seed(0))
        self.batches = [next(stream) for _ in range(count)]
        self.run = start_training(self.built.system, protocol, 0, time.process_time)
        self.place = 0

    def save(self, path: Path) -> None:
        """Write the batches for the other side."""
        sizes = self.built.task.sizes
        torch.save(
            {
                "source": sizes.source_vocabs[0],
                "target": sizes.target_vocab,
                "batches": [_falling(batch) for batch in self.batches],
            },
            path,
        )

    @property
    def parameters(self) -> int:
        """Of the whole network."""
        return sum(p.numel() for p in self.built.system.parameters())

    def turn(self, steps: int) -> tuple[float, int]:
        """Take some steps; CPU seconds and target tokens."""
        before, start = self.run.tokens, time.process_time()
        for _ in range(steps):
            self.run.update(self.batches[self.place])
            self.place = (self.place + 1) % len(self.batches)
        return time.process_time() - start, self.run.tokens - before


def _falling(batch: Batch) -> tuple[torch.Tensor, ...]:
    """Rows by falling source length, as JoeyNMT wants them."""
    tokens = batch.sources[0].tokens
    order = (tokens != 0).sum(1).argsort(descending=True, stable=True)
    return tokens[order], batch.inputs[order], batch.targets[order]


class Peer:
    """JoeyNMT in a process of its own."""

    def __init__(self, python: str, path: Path, model: str) -> None:
        options = {"model": model, "lr": LR, **OPTIONS[model]}
        self.process = subprocess.Popen(
            [python, str(WORKER), str(path), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.parameters = self._answer()["parameters"]

    def _answer(self):
        assert self.process.stdout is not None, "opened as a pipe"
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the peer stopped; its error stands above.")
        return json.loads(line)

    def turn(self, steps: int) -> tuple[float, int]:
        """Ask for some steps."""
        assert self.process.stdin is not None, "opened as a pipe"
        print(steps, file=self.process.stdin, flush=True)
        seconds, tokens = self._answer()
        return seconds, tokens


def main() -> None:
    parser = argparse.ArgumentParser(description="Training speed beside JoeyNMT.")
    parser.add_argument("python", help="Interpreter of an environment with JoeyNMT.")
    parser.add_argument("--model", choices=sorted(OURS), default="rnn")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--more", default="", help="Further options of our backbone, ',a=b'.")
    parser.add_argument(
        "--hand-back", action="store_true", help="Leave our allocator as it is, like the peer's."
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.hand_back:
        keep_freed_memory()
    load_package("variants")
    load_package("tasks")
    ours = Harness(options.model, options.more, options.rounds * options.steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batches.pt"
        ours.save(path)
        sides = {"harness": ours, "joeynmt": Peer(options.python, path, options.model)}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        order = random.Random(0)
        for _ in range(options.rounds):
            for name in order.sample(sorted(sides), 2):
                seconds, tokens = sides[name].turn(options.steps)
                rates[name].append(tokens / seconds)
    # the first round warms up
    ratio = ratio_interval(np.log(np.divide(rates["harness"][1:], rates["joeynmt"][1:])))
    print(
        json.dumps(
            {
                "model": options.model,
                "more": options.more,
                "parameters": {name: side.parameters for name, side in sides.items()},
                "tokens_per_s": {
                    name: round(sum(found[1:]) / len(found[1:])) for name, found in rates.items()
                },
                "speed_ratio": [round(x, 3) for x in (ratio.estimate, ratio.low, ratio.high)],
            }
        )
    )


if __name__ == "__main__":
    main()
