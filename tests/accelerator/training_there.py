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
FEW = {"evaluate": 8}
"""Test examples, where a task lets one choose."""


def invented_data(folder):
    """A few invented rows of every data set, as the tests of tasks have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted((ROOT / "tests/tasks/small_data").glob("*.py")):
        runpy.run_path(str(file))["write"](folder, random.Random(0))
    return folder


def cells_of_tasks(names=(), *, beside=(), long=True):
    """A cell of each task; without `long` of one of those whose batches and networks are alike.

    What a task does by itself (draw examples, score answers) it does on the host. Cells that are
    trained `beside` these count, too.
    """
    known = set() if long else {_kind(cell) for cell in beside}
    found = {}
    for name in names or registry.registrations(TASKS):
        cells = plan(Request(preset="smoke", tasks=name, variants="additive", speed=False)).cells
        kind = _kind(cells[0])
        if kind not in known or names:
            found.setdefault(name if long or names else kind, cells[0])
    return [*found.values()]


def _kind(cell):
    """Backbone without its sizes, and what the batches of the task hold."""
    task = registry.find(TASKS, parse(cell.task).name).target
    backbone = parse(cell.backbone)
    parts = [text for text in map(str, backbone.options.items()) if "Selector" in text]
    given = sorted(task.capabilities)
    return backbone.name, *parts, task.decodes, task.regresses, *given


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
        parts |= set(map(str, _kind(one.cell)))
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
        task = parse(cell.task)
        if FEW.keys() <= task.options.keys():
            task = Selector(task.name, {**task.options, **FEW})
        try:
            with Pretended():
                train_cell(
                    replace(cell, device=NAME, protocol=short, task=task.show()),
                    data_dir=Path(data),
                )
        except (Refused, DataUnavailable):
            continue
        except Exception as error:  # noqa: BLE001  # whatever breaks is a sentence
            ours = [
                f"{Path(one.filename).relative_to(ROOT)}:{one.lineno}"
                for one in traceback.extract_tb(error.__traceback__)
                if Path(one.filename).is_relative_to(ROOT)
            ]
            first = str(error).partition("\n")[0]
            wrong.append(f"{cell.label}: {type(error).__name__} at {ours[-1]}: {first}")
    return wrong
