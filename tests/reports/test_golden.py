"""Two whole reports, kept as files; `--update-golden` rewrites them, and the diff is reviewed."""

import re
from pathlib import Path

import pytest

from reports.render import RenderedReport, render

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RenderedReport:
    out = tmp_path_factory.mktemp("small")
    return render(HERE / "data" / "small_run", out=out)


def without_drawings(page: str) -> str:
    """Drawings change with the libraries that draw; what they are called does not."""
    page = re.sub(r"(<svg).*?(<title.*?</desc>).*?(</svg>)", r"\1>\2\3", page, flags=re.DOTALL)
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL)
    page = re.sub(r"<script>.*?</script>", "<script></script>", page, flags=re.DOTALL)
    page = re.sub(r"(data:image/png;base64,)[^\"]+", r"\1", page)
    return re.sub(r"sha256-[^']+", "sha256-", page)


def compare(text: str, golden: Path, *, update: bool) -> None:
    if update:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_the_markdown_report_is_the_reviewed_one(
    small: RenderedReport, update_golden: bool
) -> None:
    text = small.markdown.read_text(encoding="utf-8")
    compare(text, HERE / "golden" / "report.md", update=update_golden)


def test_the_page_is_the_reviewed_one(small: RenderedReport, update_golden: bool) -> None:
    text = without_drawings(small.html.read_text(encoding="utf-8"))
    compare(text, HERE / "golden" / "report.html", update=update_golden)


def test_rendering_twice_gives_the_same_bytes(small: RenderedReport, tmp_path: Path) -> None:
    again = render(HERE / "data" / "small_run", out=tmp_path)
    first, second = small.html.parent, again.html.parent
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".html", ".md", ".svg"}
    for path in files:
        assert (first / path).read_bytes() == (second / path).read_bytes(), path
