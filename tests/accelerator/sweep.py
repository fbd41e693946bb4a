"""Run a sweep in a process of its own, because the device stays registered; prints JSON."""

import argparse
import json
import sys
from pathlib import Path

import torch
from device import install, waits

sys.path.insert(0, str(Path(__file__).parents[2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", default="", help="names, or 'all'")
    parser.add_argument("--tasks", default="", help="names, or 'all'")
    parser.add_argument("--parts", action="store_true", help="train parts of other networks too")
    parser.add_argument("--long", action="store_true", help="leave nothing out as the same code")
    parser.add_argument("--data", default="", help="folder for invented data")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    install()
    from bench.api import registry
    from bench.api.loading import load_package

    load_package("variants")
    load_package("tasks")
    from training_there import cells_of_tasks, cells_of_variants, invented_data, training_there
    from variants_there import variants_there

    names = asked.variants.split(",") if asked.variants else []
    if asked.variants == "all":
        names = [*registry.listed_variants()]
    wrong, calls = variants_there(names, long=asked.long)
    if asked.tasks or asked.parts:
        data = invented_data(Path(asked.data))
        tasks = asked.tasks.split(",") if asked.tasks else []
        every = [] if asked.tasks == "all" else tasks
        cells = cells_of_variants(long=asked.long) if asked.parts else []
        if asked.tasks:
            cells += cells_of_tasks(every, beside=cells, long=asked.long)
        wrong += training_there(cells, data)
        calls += len(cells)
    found = [[kind, place, count] for (kind, place), count in sorted(waits.items())]
    print(json.dumps({"wrong": wrong, "waits": found, "calls": calls}))


if __name__ == "__main__":
    main()
