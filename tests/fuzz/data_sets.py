"""Every data set of the bench, small and with a damaged file, read as a task reads it."""

import importlib.util
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.api import registry
from bench.api.task import TASKS
from tests.fuzz.law import Attack, Case
from tests.fuzz.mutations import damaged_bytes

SMALL = Path(__file__).parents[1] / "tasks" / "small_data"


def damaged_sets(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """A task that reads data, built above one damaged file of its set."""
    whole, torn = folder / "whole", folder / "torn"
    for file in sorted(SMALL.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"fuzzed_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.write(whole, random.Random(file.stem))
    files = sorted(path for path in whole.rglob("*") if path.is_file())
    readers = {
        name: task
        for task in registry.registrations(TASKS).values()
        for name in task.target.data_sets
    }
    while True:
        path = chance.choice(files)
        name = path.relative_to(whole).parts[0]
        if name not in readers:
            continue
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(whole / name, torn / name)
        (torn / path.relative_to(whole)).write_bytes(damaged_bytes(path.read_bytes(), chance))
        yield f"{path.relative_to(whole)} by {readers[name].name}", _reading(readers[name], torn)


def _reading(task: registry.Registration, torn: Path) -> Case:
    def read() -> None:
        built = task.target(task.config(), 0, torn)
        next(iter(built.splits["test"]), None) if hasattr(built, "splits") else None

    return read


ATTACKS = (Attack("data sets", damaged_sets, few=8, many=500),)
