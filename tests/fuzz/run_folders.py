"""Run folders and packs that another program, another version or a bad disk wrote."""

import json
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.api.cell import Cell
from results.environment import Environment
from results.pack import write_pack
from results.row import Record, Row
from results.store import Store
from tests.fuzz.law import Attack, Case, command
from tests.fuzz.mutations import damaged_bytes, other_json

VARIANTS = ("scaled_dot", "additive", "none_state")


def _records(environment: str) -> Iterator[Record]:
    for number, variant in enumerate(VARIANTS):
        for seed in range(2):
            cell = Cell(
                kind="quality",
                task="recall",
                backbone="rnn_seq2seq",
                variant=variant,
                slot="cross",
                protocol="adam[steps=9]",
                seed=seed,
            )
            curve = [
                Row(metric="token_accuracy", value=0.1 * x, axis="step", x=x, split="validation")
                for x in (1.0, 2.0)
            ]
            last = Row(metric="token_accuracy", value=0.5 + 0.1 * number, split="test")
            yield _record(cell, environment, (*curve, last))
        shape = "attend[batch=2,length=16,regime=cross]"
        cell = Cell(
            kind="speed",
            task=shape,
            backbone="none",
            variant=variant,
            slot="cross",
            protocol="rounds",
        )
        rows = [
            Row(
                metric="forward_time_ms",
                value=1.0 + number + 0.01 * visit,
                repeat=visit,
                axis="length",
                x=16.0,
                baseline=baseline,
            )
            for visit in range(4)
            for baseline in ("", "reference", "aa_control")
        ]
        yield _record(cell, environment, tuple(rows))


def _record(cell: Cell, environment: str, rows: tuple[Row, ...]) -> Record:
    return Record(
        cell={name: getattr(cell, name) for name in Cell.__dataclass_fields__},
        id=cell.id,
        status="ok",
        environment=environment,
        seconds=1.5,
        finished="2026-11-20T12:00:00+00:00",
        rows=rows,
    )


def write_whole(folder: Path) -> Path:
    """A small run folder without damage."""
    machine = Environment(
        cpu="a processor",
        physical_cores=2,
        logical_cores=4,
        memory_bytes=2**33,
        platform="Linux",
        python="3.11",
        packages={"torch": "2.13"},
        threads=1,
    )
    with Store.create(folder) as store:
        environment = store.write_environment(machine)
        for record in _records(environment):
            store.append(record)
            if record.cell["kind"] == "quality":
                store.write_artifact(record.id, _artifact())
        _write_beside(store)
    return folder


def _artifact() -> dict[str, object]:
    shown = {"title": "one", "query": ["a", "b"], "source": ["c"], "weights": [[1.0], [1.0]]}
    example = {**shown, "reference": "a b", "output": "a b", "said": ["a", "b"], "sentences": None}
    return {
        "attention": [{**shown, "gold": [[1.0], [0.0]]}],
        "examples": [{**example, "gold": None, "picture": None}],
        "samples": [{"source": "c", "reference": "a b", "output": "a"}],
        "notes": {"data": "drawn here"},
    }


def _write_beside(store: Store) -> None:
    metric = {"title": "Accuracy", "unit": "fraction", "low": 0.0, "high": 1.0, "better": "higher"}
    catalog = {
        "variants": {name: {"short": name, "title": name, "family": "score"} for name in VARIANTS},
        "tasks": {"recall": {"short": "recall", "primary": "token_accuracy", "chance": 0.1}},
        "metrics": {"token_accuracy": {**metric, "group": "quality"}},
        "baseline": "scaled_dot",
        "commands": ["python -m bench run"],
        "preset": "quick",
        "ranks": True,
        "plugins": [],
        "data_dir": "",
        "data_variable": "",
    }
    entry = {"passed": ["oracle"], "skipped": {}, "failed": {}, "expected": ["oracle"]}
    left = {"label": "quality x", "reason": "no time", "command": "python -m bench run"}
    store.write_json("catalog.json", catalog)
    store.write_json("certificates.json", dict.fromkeys(VARIANTS, entry))
    store.write_json("plan.json", {"cells": ["quality y"], "left_out": [left], "expected_s": 3.0})
    store.write_json("spec.json", {"command": "run", "variants": "additive"})


@cache
def _kinds(whole: Path) -> tuple[str, ...]:
    """Files of a run folder; the ledger and the environment are damaged as often as the others."""
    return tuple(
        sorted(
            str(path.relative_to(whole))
            for path in whole.rglob("*.json*")
            if "artifacts" not in path.parts or path == min(whole.glob("artifacts/*"))
        )
    )


def _damage_file(path: Path, chance: random.Random) -> None:
    if chance.random() < 0.3:
        path.write_bytes(damaged_bytes(path.read_bytes(), chance))
    elif path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        at = chance.randrange(len(lines))
        lines[at] = json.dumps(other_json(json.loads(lines[at]), chance))
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text(json.dumps(other_json(json.loads(path.read_text()), chance)))


def damaged_folders(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Reports of folders in which one file is damaged."""
    whole = write_whole(folder / "whole")
    while True:
        name = chance.choice(_kinds(whole))
        torn = folder / "torn"
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(whole, torn)
        _damage_file(torn / name, chance)
        yield name, lambda torn=torn: _reported(torn)


def _reported(torn: Path) -> None:
    command("report", str(torn), "--export")
    command("report", str(torn), "--out", str(torn / "out"), "--pack", str(torn / "out.parquet"))


def damaged_packs(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Packs with damaged bytes."""
    whole = write_pack(Store(write_whole(folder / "packed")), folder / "whole.parquet").read_bytes()
    while True:
        path = folder / "torn.parquet"
        path.write_bytes(damaged_bytes(whole, chance))
        out = str(folder / "out")
        yield "pack", lambda path=path, out=out: command("report", str(path), "--out", out)


ATTACKS = (
    Attack("run folders", damaged_folders, few=2, many=20),
    Attack("packs", damaged_packs, few=10, many=150),
)
