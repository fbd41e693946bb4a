"""Spec files that somebody edited, or that another program wrote."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from bench.cli.run_options import RunOptions
from bench.cli.spec_file import read_spec, spec_of
from bench.running.plan import plan
from tests.fuzz.law import Attack, Case, command
from tests.fuzz.mutations import damaged_bytes, other_json

ASKED = {"variants": "dot", "tasks": "recall", "preset": "smoke", "speed": False}
BESIDE = {
    "run": {"command": "run"},
    "ablate": {"command": "ablate", "base": "dot", "axis": "score"},
    "study": {"command": "study", "tuning": {"trials": 2, "storage": ""}},
}


def specs(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Specs of three commands, read and planned; nothing runs."""
    path = folder / "spec.json"
    while True:
        which = chance.choice([*BESIDE])
        whole = {**spec_of(RunOptions(**ASKED)), **BESIDE[which]}
        content = json.dumps(other_json(whole, chance)).encode()
        if chance.random() < 0.3:
            content = damaged_bytes(content, chance)
        path.write_bytes(content)
        yield content[:300].decode(errors="replace"), lambda which=which: _read(path, which)


def _read(path: Path, which: str) -> None:
    options, _ = read_spec(RunOptions(spec=str(path)), which)
    if which == "run" and options.seeds < 100:
        plan(options)


def commands(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Commands that end at a wrong spec."""
    path = folder / "spec.json"
    while True:
        which = chance.choice([*BESIDE])
        whole = {**spec_of(RunOptions(**ASKED)), **BESIDE[which], "data_dir": 3, "jobs": []}
        path.write_text(json.dumps(other_json(whole, chance)))
        words = (which, "--spec", str(path), "--out", str(folder / "out"))
        yield which, lambda words=words: command(*words)


ATTACKS = (
    Attack("specs", specs, few=60, many=1500),
    Attack("commands with specs", commands, few=10, many=150),
)
