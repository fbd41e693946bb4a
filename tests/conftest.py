"""One thread, no network, and annotations of shapes that are checked while quick tests run.

jaxtyping's hook rewrites `variants` and `tasks` as they are imported, so it is installed before
anything here imports them. Slow tests run the code as users do, without these checks, which take a
quarter of the time of a certificate; JAXTYPING_DISABLE=1 does without the hook, which takes seven
seconds of every process. So `make slow` does, and `make test` but for tests that are marked
`annotations`; `make check` has it for all quick tests. Under the hook
`torch.compile(fullgraph=True)` breaks, so compiled code is tested in a process without it.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

import pytest
import torch
from jaxtyping import config, install_import_hook

torch.set_num_threads(1)

if not config.jaxtyping_disable:
    install_import_hook(["variants", "tasks"], "beartype.beartype")

from bench.api.loading import load_package  # noqa: E402
from bench.running.machine_lock import LOCK_VARIABLE  # noqa: E402
from tests.parts import in_part, read_part  # noqa: E402  # after the hook

load_package("variants")
load_package("tasks")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")
    parser.addoption("--part", type=read_part, metavar="K/N", help="run one part of N of the tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of other parts; a test is in the same part whatever else is chosen."""
    if part := config.getoption("--part"):
        others = [item for item in items if not in_part(item.nodeid, part)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if in_part(item.nodeid, part)]


@pytest.fixture(scope="session", autouse=True)
def _own_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test waits for a run of this machine, and no run for a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCK_VARIABLE, str(tmp_path_factory.mktemp("lock") / "machine.lock"))
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Some tests of threads change the number; none may leave it changed."""
    yield
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _checked_annotations(request: pytest.FixtureRequest) -> None:
    """Quick tests check every annotation, slow ones none."""
    slow = request.node.get_closest_marker("slow") is not None
    config.update("jaxtyping_disable", slow)


@pytest.fixture
def unchecked_annotations(_checked_annotations: None) -> None:
    """No annotation is looked at, as where users run the code."""
    config.update("jaxtyping_disable", True)


class Tree:
    """A copy of the project in which a test may write; its commands see the copy alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        here = Path(__file__).parents[1]
        left_out = shutil.ignore_patterns("__pycache__", "published", ".*_cache")
        for name in ("bench", "variants", "tasks", "results", "reports", "tests", "docs"):
            shutil.copytree(here / name, root / name, ignore=left_out)
        for path in (*here.glob("*.toml"), *here.glob("*.md"), here / ".importlinter"):
            shutil.copy(path, root)

    def python(self, *words: object) -> str:
        """Run Python in the copy; what it printed. A command that fails fails the test."""
        return self.run(sys.executable, *words)

    def bench(self, *words: object) -> str:
        """Run the bench of the copy."""
        return self.python("-m", "bench", *words)

    def run(self, *words: object) -> str:
        """Run any command in the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        environment["BENCH_CACHE_DIR"] = str(self.root / ".cache")
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The project, copied to a place of its own."""
    return Tree(tmp_path / "tree")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count skips by reason, so that a suite that skips everything is seen."""
    reasons = Counter(
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("skips by reason")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:5d}  {reason.removeprefix('Skipped: ')}")
