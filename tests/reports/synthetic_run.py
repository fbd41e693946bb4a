"""Write run folders made of synthetic rows."""

import json
import math
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from synthetic import (
    BASE,
    ENVIRONMENT,
    LENGTHS,
    TASKS,
    VARIANTS,
    artifacts,
    catalog,
    quality_cell,
    quality_rows,
    record,
    score,
    speed_cell,
    speed_rows,
)

from bench.api.cell import Cell
from reports.render import RenderedReport
from results.row import Record, Row


def quality_records(tasks: Iterable[str], seeds: int) -> Iterable[Record]:
    """Training cells: one diverges, one is out of memory, the linear one refuses translation."""
    for task in tasks:
        for name, shape in VARIANTS.items():
            for seed in range(seeds):
                cell = quality_cell(task, name, seed)
                if shape.short == "linear_attention" and task.startswith("translation"):
                    reason = "linear_attention: no cross form for a source that is padded."
                    yield record(cell, "refused", detail=reason)
                elif shape.short == "lstmn" and task.startswith("recall") and seed == 1:
                    yield record(cell, "diverged", detail="loss is nan at step 37.")
                else:
                    yield record(cell, "ok", quality_rows(task, shape, seed))


def speed_records() -> Iterable[Record]:
    """Timings; the longest sequence does not fit one variant."""
    for name, shape in VARIANTS.items():
        for length in LENGTHS:
            cell = speed_cell(name, length)
            if shape.short == "lstmn" and length == LENGTHS[-1]:
                yield record(cell, "timeout", detail="60 s were not enough for one round.")
            else:
                yield record(cell, "ok", speed_rows(shape, length))


def trial_records(task: str, trials: int) -> Iterable[Record]:
    """A study of two variants with the same number of trials."""
    for name in (BASE, "scaled_dot"):
        draw = random.Random(name)
        for number in range(trials):
            rate = round(10 ** draw.uniform(-4, -2), 6)
            cell = replace(
                quality_cell(task, name, number), kind="trial", protocol=f"adam[lr={rate}]"
            )
            level = VARIANTS[name].quality - 0.08 * abs(math.log10(rate) + 2.6)
            value = score(TASKS[task][1], level)
            primary = TASKS[task][1]
            row = Row(metric=primary, value=value, repeat=number, split="validation")
            yield record(cell, "ok", [row])


def certificates() -> dict[str, dict[str, object]]:
    """Everything green but one."""
    checks = ["causality", "padding", "gradients", "split_invariance"]
    found: dict[str, dict[str, object]] = {}
    for name, shape in VARIANTS.items():
        failed = {"causality": "gradient at key 9 > query 8 is 3.1e-04."} if shape.red else {}
        skipped = {"gradients": "has no float64 form."} if shape.short == "lstmn" else {}
        passed = [check for check in checks if check not in failed and check not in skipped]
        found[name] = {"passed": passed, "skipped": skipped, "failed": failed}
        found[name] |= {"expected": [check for check in checks if check not in skipped]}
    return found


def write_json(path: Path, data: object) -> None:
    """Write one file of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def write_run(
    folder: Path,
    *,
    records: Iterable[Record] | None = None,
    catalog_data: dict[str, object] | None = None,
    tasks: Iterable[str] = tuple(TASKS),
    seeds: int = 3,
) -> Path:
    """Write a run folder as the bench does."""
    tasks = tuple(tasks)
    if records is None:
        trials = trial_records(tasks[0], 8)
        records = [*quality_records(tasks, seeds), *speed_records(), *trials]
    records = list(records)
    ledger = folder / "ledger" / "host-1-0000.jsonl"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(entry.to_json(), allow_nan=False) + "\n" for entry in records]
    ledger.write_text("".join(lines), encoding="utf-8")
    for entry in records:
        if entry.status == "ok" and entry.cell["kind"] == "quality" and entry.cell["seed"] == 0:
            shape = VARIANTS.get(str(entry.cell["variant"]))
            if shape is not None and str(entry.cell["task"]).startswith(("reversal", "transl")):
                data = artifacts(str(entry.cell["task"]), shape)
                write_json(folder / "artifacts" / f"{entry.id}.json", data)
    left = quality_cell(tasks[0], "memory_net[hops=3]", 0)
    labels = [Cell(**entry.cell).label for entry in records]  # type: ignore[arg-type]
    reason = "no budget left: 120 s were asked, the plan needs 133 s."
    command = f"python -m bench run --cell '{left.label}'"
    left_out = [{"label": left.label, "reason": reason, "command": command}]
    asked = {"preset": "standard", "seeds": seeds, "threads": 1}
    write_json(folder / "plan.json", {"asked": asked, "cells": labels, "left_out": left_out})
    write_json(folder / "certificates.json", certificates())
    write_json(folder / "catalog.json", catalog_data if catalog_data is not None else catalog())
    machine = {"python": "3.11.2", "torch": "2.13.0+cpu", "cpu": "Example CPU, 2 cores"}
    machine |= {"threads": 1, "git": {"revision": "22f845b", "dirty": False}}
    write_json(folder / "environments" / f"{ENVIRONMENT}.json", machine)
    return folder


def markdown_of(report: RenderedReport) -> str:
    """The short file and the details as one text."""
    files = (report.markdown, report.details)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
