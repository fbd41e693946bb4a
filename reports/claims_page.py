"""Write the page of claims: HTML, and Markdown with its figures beside it."""

from collections.abc import Sequence
from pathlib import Path

from reports.blocks import Figure
from reports.claims import ClaimOutcome
from reports.claims_document import claims_document
from reports.html import page
from reports.markdown import FIGURES, whole
from reports.written_files import own_folder, write_file


def write_claims(outcomes: Sequence[ClaimOutcome], out: Path) -> tuple[Path, Path]:
    """Write `claims.html`, `claims.md` and their figures.

    Returns:
        Paths of the page and of the Markdown.
    """
    report = claims_document(outcomes)
    out.mkdir(parents=True, exist_ok=True)
    figures = own_folder(out / FIGURES)
    for block in (block for section in report.sections for block in section.blocks):
        if isinstance(block, Figure):
            write_file(figures / f"{block.key}.svg", block.svg)
    html, markdown = out / "claims.html", out / "claims.md"
    write_file(html, page(report))
    write_file(markdown, whole(report))
    return html, markdown
