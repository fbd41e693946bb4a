"""Run folders to report on, and the option that rewrites golden files."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))  # the tests of a folder are no package

from synthetic_families import write_families  # noqa: E402
from synthetic_run import markdown_of, write_run  # noqa: E402

from reports.render import RenderedReport, render  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    with suppress(ValueError):  # another conftest may have the same option
        parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden", default=False))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A realistic run: 3 tasks, 8 variants, 3 seeds, timings, a study, holes."""
    return write_run(tmp_path_factory.mktemp("runs") / "demo")


@pytest.fixture(scope="session")
def rendered(demo: Path) -> RenderedReport:
    return render(demo)


@pytest.fixture(scope="session")
def page(rendered: RenderedReport) -> str:
    return rendered.html.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def markdown(rendered: RenderedReport) -> str:
    return markdown_of(rendered)


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of comparisons: five families, baselines, published results, examples."""
    return write_families(tmp_path_factory.mktemp("runs") / "families")


@pytest.fixture(scope="session")
def families_report(families: Path) -> RenderedReport:
    return render(families)
