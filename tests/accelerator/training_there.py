"""Training cells there: updates, validation, test, decoding and pictures of each task."""

import random
import runpy
import traceback
from dataclasses import replace
from pathlib import Path

from device import NAME, ROOT, Pretended

from bench.api import registry
from bench.api.errors import DataUnavailable, Refused
from bench.api.selector import Selector, parse
from bench.api.task import TASKS
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.quality import train_cell

SMALL = {"steps": 2, "evaluate_every": 2, "batch": 4, "cpu_seconds": 0.0}


def invented_data(folder):
    """A few invented rows of every data set, as the tests of tasks have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted((ROOT / "tests/tasks/small_data").glob("*.py")):
        runpy.run_path(str(file))["write"](folder, random.Random(0))
    return folder


def cells_of_tasks(names=()):
    """A cell of each task."""
    found = []
    for name in names or registry.registrations(TASKS):
        cells = plan(Request(preset="smoke", tasks=name, variants="additive", speed=False)).cells
        found += cells[:1]
    return found


def cells_of_variants(*, long):
    """A cell of each variant; without `long` of those that bring a part of a network of their own.

    What differs beneath its heads alone is the same code around attention.
    """
    found, seen = [], set()
    planned = plan(Request(preset="smoke", speed=False))
    for one in planned.quality:
        spec = one.spec
        around = (*spec.axes["output"], *spec.axes["loss"], *spec.axes["head"])
        parts = {part.show() for part in (*around, *spec.fixes.values())}
        parts.add(parse(one.cell.backbone).show())
        if one.cell.variant in seen or (not long and parts <= seen):
            continue
        seen |= {one.cell.variant, *parts}
        found.append(one.cell)
    return found


def training_there(cells, data):
    """Sentences about cells that break."""
    wrong = []
    for cell in cells:
        protocol = parse(cell.protocol)
        short = Selector(protocol.name, {**protocol.options, **SMALL}).show()
        try:
            with Pretended():
                train_cell(replace(cell, device=NAME, protocol=short), data_dir=Path(data))
        except (Refused, DataUnavailable):
            continue
        except Exception as error:
            ours = [
                f"{Path(one.filename).relative_to(ROOT)}:{one.lineno}"
                for one in traceback.extract_tb(error.__traceback__)
                if Path(one.filename).is_relative_to(ROOT)
            ]
            first = str(error).partition("\n")[0]
            wrong.append(f"{cell.label}: {type(error).__name__} at {ours[-1]}: {first}")
    return wrong
