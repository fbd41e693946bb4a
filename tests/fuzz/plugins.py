"""Plug-ins that do something wrong, in a place where the bench calls them."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.law import Attack, Broken, Case

ROOT = Path(__file__).parents[2]

TROUBLES = {
    "exit 0": "sys.exit(0)",
    "exit text": "sys.exit('done')",
    "hard exit 0": "os._exit(0)",
    "surrogate": "raise RuntimeError('half \\ud800')",
    "long message": "raise RuntimeError('x' * 5_000_000)",
    "many lines": "raise RuntimeError('a\\nb\\nc')",
    "no text": "raise Mute",
    "no exception": "raise Odd('odd')",
    "interrupt": "raise KeyboardInterrupt",
    "real-time signal": "os.kill(os.getpid(), signal.SIGRTMIN + 3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
    "prints": "print('noise'); os.write(1, b'noise')",
    "closes output": "sys.stdout.close()",
    "closes descriptors": "os.closerange(0, 3)",
    "other output": "sys.stdout = open(os.devnull, 'w')",
    "threads": "torch.set_num_threads(2)",
    "dtype": "torch.set_default_dtype(torch.float64)",
    "device": "torch.set_default_device('meta')",
    "grad": "torch.set_grad_enabled(False)",
    "softmax": "F.softmax = F.log_softmax",
    "tensor": "torch.Tensor.softmax = None",
    "folder": "os.chdir('/')",
    "no folder": "shutil.rmtree(tempfile.mkdtemp()); os.chdir(tempfile.gettempdir())",
    "handlers": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "random": "np.random.seed(0)",
    "recursion": "deep()",
    "recursion limit": "sys.setrecursionlimit(80)",
    "warnings": "warnings.simplefilter('error')",
    "a warning": "warnings.warn('careful \\ud800')",
    "memory": "raise MemoryError",
    "at exit": "atexit.register(lambda: 1 / 0)",
    "thread": "threading.Thread(target=time.sleep, args=(3,), daemon=True).start()",
    "stop iteration": "raise StopIteration",
    "no bench": "sys.modules.pop('bench.running.runner', None)",
    "time": "time.perf_counter = None",
    "json": "json.dumps = None",
    "nothing": "pass",
}
HARMLESS = {"nothing", "prints", "a warning", "thread", "at exit", "random", "handlers"}
"""What a plug-in may do when it is imported without being refused."""
PLACES = ("import", "init", "energy", "config", "title")

HEAD = '''"""A plug-in of a fuzzer."""

import atexit, json, os, random, shutil, signal, sys, tempfile, threading, time, warnings
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from bench.api.score import Score
from bench.api.config import Config
from bench.api.registry import DefaultTask, register
from variants.scores.scaled_dot import ScaledDotScore


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


def deep():
    return deep()


def trouble():
    {trouble}


{at_import}


@dataclass(frozen=True, kw_only=True)
class WrongConfig(Config):
    """Options."""

    width: int = 3
    """A number."""

    def __post_init__(self):
        {at_config}


@register("score", "wrong", config=WrongConfig, title={title},
          default_task=DefaultTask(task="after_marker"))
class Wrong(ScaledDotScore):
    """A score."""

    def __init__(self, config, dims):
        {at_init}
        super().__init__(config, dims)

    def energy(self, call, features):
        {at_energy}
        return super().energy(call, features)

    def dot_form(self, call):
        {at_energy}
        return super().dot_form(call)
'''


def text_of(trouble: str, place: str) -> str:
    """A plug-in with one trouble in one place."""
    return HEAD.format(
        trouble=TROUBLES[trouble],
        at_import="trouble()" if place == "import" else "",
        at_config="trouble()" if place == "config" else "pass",
        at_init="trouble()" if place == "init" else "pass",
        at_energy="trouble()" if place == "energy" else "pass",
        title="'half \\ud800 <b>'" if place == "title" else "'wrong'",
    )


def plugins(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Runs with a plug-in and a variant of the bench, and the same runs again."""
    cases = [(trouble, place) for trouble in TROUBLES for place in PLACES]
    chance.shuffle(cases)
    for trouble, place in cases:
        path = folder / "plug.py"
        path.write_text(text_of(trouble, place))
        yield (
            f"{trouble} at {place}",
            lambda trouble=trouble, place=place: _run_twice(folder, trouble, place),
        )


def _run_twice(folder: Path, trouble: str, place: str) -> None:
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    for _ in range(2):
        done = _run(folder, out)
        if "Traceback" in done.stderr and "at exit" not in trouble:
            raise Broken(done.stderr[-2000:])
        if done.returncode == 2:
            if place == "import" and trouble in HARMLESS:
                raise Broken(f"refused: {done.stderr[-500:]}")
            if len(done.stderr) > 6000:
                raise Broken(f"{len(done.stderr)} characters on standard error")
            return
        _judge(done)


def _judge(done: subprocess.CompletedProcess[str]) -> None:
    """The others have their values, and the exit code says whether the plug-in has."""
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise Broken(
            f"{done.returncode}, no JSON: {done.stdout[-300:]} {done.stderr[-900:]}"
        ) from None
    values = {row["variant"] for row in found["table"] if row.get("mean") is not None}
    reasons = found["reasons"]
    if (done.returncode == 0) != (not reasons):
        raise Broken(f"exit code {done.returncode} with {reasons}")
    if any(len(one["reason"]) > 1500 for one in reasons):
        raise Broken("a reason of megabytes")
    counted = sum(found["counts"].values()) + found["already_finished"]
    failed = sum(one["cells"] for one in reasons)
    if counted - failed < 2 or not found["table"]:
        raise Broken(f"{values} {found['counts']} {reasons}")


def _run(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "run", "--variants", "wrong,dot", "--json"]
    command += ["--tasks", "after_marker", "--preset", "smoke", "--training", "adam[steps=1]"]
    command += ["--no-speed", "--no-verify", "--jobs", "1", "--plugin", str(folder / "plug.py")]
    return subprocess.run(
        [*command, "--out", str(out)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BENCH_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


ATTACKS = (Attack("plug-ins", plugins, few=0, many=2),)
