"""One thread, no network, and annotations of shapes that are checked while tests run.

jaxtyping's hook rewrites `variants` and `tasks` as they are imported, so it is installed before
anything here imports them; compiled code is tested in a process without it (STYLE.md rule 17).
"""

import os
from collections import Counter
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

import pytest
import torch
from jaxtyping import install_import_hook

torch.set_num_threads(1)

install_import_hook(["variants", "tasks"], "beartype.beartype")

from bench.api.registry import load_package  # noqa: E402

load_package("variants")
load_package("tasks")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Some tests of threads change the number; none may leave it changed."""
    yield
    torch.set_num_threads(1)


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
