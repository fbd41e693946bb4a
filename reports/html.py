"""The report as one HTML file that opens offline."""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.blocks import Block, Document, Figure
from reports.style import for_page

TEMPLATES = Path(__file__).parent / "templates"
ALARMS = ("red certificate", "not ranked", "not certified")


def page(document: Document) -> str:
    """Write the document as one page; every text is escaped by the template engine."""

    def drawing(figure: Figure) -> Markup:
        return Markup(for_page(figure.svg))  # our own SVG, its texts are escaped

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    template = environment.get_template("report.html.j2")
    return template.render(
        document=document,
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        alarms=ALARMS,
        kind_of=kind_of,
        drawing=drawing,
        sort_key=sort_key,
    )


def kind_of(block: Block) -> str:
    """Name of a block's class, which templates choose by."""
    return type(block).__name__


def sort_key(value: float | str) -> str:
    """What sorting compares: a text, or a number without its rounding errors.

    >>> sort_key(2.0000000000000004), sort_key("b")
    ('2', 'b')
    """
    return value if isinstance(value, str) else f"{value:.12g}"
