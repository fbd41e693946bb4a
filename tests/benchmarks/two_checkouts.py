"""Times of attention layers by the code of two checkouts, in turns: did a change make them faster?

    python tests/benchmarks/two_checkouts.py OTHER --variants sliding_window,nsa --length 8192

OTHER is another checkout of this project, such as a worktree of the commit before. Each round
starts a process of one thread in either checkout, in random order, reads a prompt, and answers
single tokens behind it. Times are CPU seconds; ratios are those of the other checkout to this one,
so more than 1 means that this one is faster.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[2]
STEPS = 20
"""Single tokens in a measurement of decoding, of which the fastest counts."""


def seconds(variant: str, length: int, dim: int, heads: int) -> dict[str, float]:
    """CPU seconds of a prompt and of a step behind it, in this process."""
    import torch

    import variants

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = variants.build(variant, dim=dim, heads=heads, regime="causal", attention_only=True)
    layer.eval()
    x = torch.randn(1, length, dim)
    token = x[:, :1]

    def ask(given: torch.Tensor, state: Any) -> Any:
        own = (given, None, None)
        return layer.attend(given, None, state, own=own, want_weights=False)[1].state

    with torch.no_grad():
        ask(x[:, : min(64, length)], layer.start(None, x))
        begin = time.process_time()
        state = ask(x, layer.start(None, x))
        prompt = time.process_time() - begin
        steps = []
        for _ in range(STEPS):
            begin = time.process_time()
            state = ask(token, state)
            steps.append(time.process_time() - begin)
    return {"prompt": prompt, "step": min(steps)}


def asked(checkout: Path, one: list[str]) -> dict[str, float]:
    """The same in a process of its own, by the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(checkout), "--one", *one]
    found = subprocess.run(
        command, env=environment, cwd=checkout, check=True, capture_output=True, text=True
    )
    return json.loads(found.stdout)


def interval(logs: list[float]) -> str:
    """Geometric mean and its 95% t interval."""
    from scipy import stats

    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1) / len(logs))
    wide = stats.t.ppf(0.975, len(logs) - 1) * spread
    return f"{math.exp(mean):.2f} [{math.exp(mean - wide):.2f}, {math.exp(mean + wide):.2f}]"


def main() -> None:
    """Print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="another checkout of this project")
    parser.add_argument("--variants", default="scaled_dot,sliding_window")
    parser.add_argument("--length", type=int, default=4096, help="tokens of the prompt")
    parser.add_argument("--dim", type=int, default=512, help="width of the layer")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        variant, *sizes = given.one
        print(json.dumps(seconds(variant, *map(int, sizes))))
        return
    print("| layer | prompt, other / this | ratio | a step, other / this | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for variant in given.variants.split(","):
        sizes = [str(size) for size in (given.length, given.dim, given.heads)]
        rows = []
        for _ in range(given.rounds):
            sides = [("other", given.other.resolve()), ("this", HERE)]
            random.shuffle(sides)
            rows.append({name: asked(checkout, [variant, *sizes]) for name, checkout in sides})
        cells = [variant]
        for what in ("prompt", "step"):
            other, mine = (
                math.exp(sum(math.log(row[side][what]) for row in rows) / len(rows))
                for side in ("other", "this")
            )
            logs = [math.log(row["other"][what] / row["this"][what]) for row in rows]
            cells += [f"{1e3 * other:.3g} / {1e3 * mine:.3g} ms", interval(logs)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
