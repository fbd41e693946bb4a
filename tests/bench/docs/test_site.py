"""The folder that mkdocs builds."""

import re
from pathlib import Path

from bench.docs.site import DETAILS, REPORTS

ROOT = Path(__file__).parents[3]
PUBLISHED = [path for path in (ROOT / REPORTS).glob("*/*.md") if path.name != DETAILS]


def test_the_page_of_variants_has_scores_and_costs_of_the_published_run(site):
    page = (site / "variants.md").read_text(encoding="utf-8")
    assert "from the published run `quick`" in page
    assert len(re.findall(r"^\*\*Default task\.\*\* .* ± ", page, flags=re.MULTILINE)) > 100


def test_every_published_report_is_a_page_whose_figures_are_there(site):
    found = 0
    for path in PUBLISHED:
        page = site / "reports" / path.parent.name / path.name
        figures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        assert not [name for name in figures if not (page.parent / name).is_file()]
        found += len(figures)
    assert found


def test_every_page_of_the_navigation_is_there(site):
    assert len(PUBLISHED) > 5
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": (\S+\.md)$", nav, flags=re.MULTILINE)
    assert {f"reports/{path.parent.name}/{path.name}" for path in PUBLISHED} <= set(named)
    assert not [name for name in named if not (site / name).is_file()]
