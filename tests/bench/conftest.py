"""A place of its own for every run: caches, the machine lock, the registry, plug-in files."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench.api import registry
from bench.running.machine_lock import LOCK_VARIABLE
from results.ledger import LedgerReader

ROOT = Path(__file__).parents[2]

WINDOW_PLUGIN = '''"""A causal sliding window, as a third party would write it.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

from bench.api.mask import Mask
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register


@dataclass(frozen=True, kw_only=True)
class SlidingConfig(Config):
    """Options of the window."""

    window: Annotated[int, IntRange(1, 64, log=True)] = 4
    """Keys a query sees, its own place included."""

    def __post_init__(self):
        if self.window < 1:
            raise InvalidConfig(f"sliding: window must be at least 1, got {self.window}.")


@register(
    "mask",
    "sliding",
    config=SlidingConfig,
    citation=Citation(text="Beltagy et al., 2020", url="https://arxiv.org/abs/2004.05150"),
    default_task=DefaultTask(task="offset"),
)
class Sliding(Mask):
    """Only the last keys are seen."""

    kind = "window"
    needs = frozenset({"causal"})

    def __init__(self, config, dims):
        super().__init__(config, dims)
        self.size = config.window

    def window(self, call):
        near = (call.key_position > call.position[:, None] - self.size)[None, None]
        return (near if call.allowed is None else near & call.allowed), None

    def oracle(self, one):
        seen = [one.visible(s) and s > one.position - self.size for s in range(one.num_keys)]
        return seen, [1.0] * one.num_keys
'''

TROUBLE_PLUGIN = '''"""Scores that kill, leave, raise or hang."""

import os
import signal
import sys
import time

from bench.api.score import Score
from bench.api.registry import DefaultTask, register
from variants.scores.scaled_dot import ScaledDotScore


def add(name, trouble):
    class Trouble(ScaledDotScore):
        def energy(self, call, features):
            trouble()
            return super().energy(call, features)

        def dot_form(self, call):
            trouble()
            return super().dot_form(call)

    Trouble.__qualname__ = name
    register("score", name, default_task=DefaultTask(task="after_marker"), title=name)(Trouble)


def error():
    raise RuntimeError("the score gave up")


add("killer", lambda: os.kill(os.getpid(), signal.SIGKILL))
add("crasher", lambda: os.kill(os.getpid(), signal.SIGSEGV))
add("leaver", lambda: os._exit(7))
add("quitter", lambda: sys.exit(3))
add("raiser", error)
add("hanger", lambda: time.sleep(600))
'''


@pytest.fixture(scope="session")
def _certificates(tmp_path_factory):
    """Certificates are kept between tests, and never taken from the user's cache."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_place(monkeypatch, tmp_path_factory, _certificates):
    """No cache and no lock of a user's run, and no data but those a test names."""
    place = tmp_path_factory.mktemp("tmp")
    monkeypatch.setenv("BENCH_CACHE_DIR", str(_certificates))
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv(LOCK_VARIABLE, str(place / "machine.lock"))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)


@pytest.fixture
def fresh_registry():
    """What a test registers is gone after it."""
    kept = {axis: dict(names) for axis, names in registry._ENTRIES.items()}
    modules = set(sys.modules)
    yield registry
    for axis, names in kept.items():
        registry._ENTRIES[axis].clear()
        registry._ENTRIES[axis].update(names)
    for name in set(sys.modules) - modules:
        if name.startswith("bench_plugin_"):
            del sys.modules[name]


@pytest.fixture
def window_plugin(tmp_path, fresh_registry):
    path = tmp_path / "sliding_window.py"
    path.write_text(WINDOW_PLUGIN)
    return path


@pytest.fixture
def trouble_plugin(tmp_path, fresh_registry):
    path = tmp_path / "trouble.py"
    path.write_text(TROUBLE_PLUGIN)
    return path


@pytest.fixture
def bench():
    """Run the command line in a process of its own."""

    def run(*arguments, cwd=ROOT, **settings):
        command = [sys.executable, "-m", "bench", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def cells_of():
    """Every attempt in a run folder: (status, variant name, detail) by cell id."""

    def read(folder):
        found = {}
        # the store's own reader leaves out a line that is being appended
        for record in LedgerReader(Path(folder) / "ledger").read().records:
            name = record.cell["variant"].partition("[")[0]
            found.setdefault(record.id, []).append((record.status, name, record.detail))
        return found

    return read
