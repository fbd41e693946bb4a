"""The report as one HTML file that opens offline."""

import base64
import hashlib
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.blocks import Block, Document, Figure, StepsBlock
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
    walks = any(
        isinstance(block, StepsBlock) for part in document.sections for block in part.blocks
    )
    names = ("report.js", "steps.js") if walks else ("report.js",)
    scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in names]
    template = environment.get_template("report.html.j2")
    return template.render(
        document=document,
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        hashes=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        data_of=data_of,
        alarms=ALARMS,
        kind_of=kind_of,
        drawing=drawing,
        sort_key=sort_key,
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def data_of(steps: StepsBlock) -> Markup:
    r"""Values for the script, in which no text can end the element that holds them.

    >>> data_of(Steps(key="k", title="t", data={"a": "</script>"}))
    Markup('{"a":"\\u003c/script\\u003e"}')
    """
    text = json.dumps(steps.data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # no letter of it means anything in HTML


def kind_of(block: Block) -> str:
    """Name of a block's class, which templates choose by."""
    return type(block).__name__


def sort_key(value: float | str) -> str:
    """What sorting compares: a text, or a number without its rounding errors.

    >>> sort_key(2.0000000000000004), sort_key("b")
    ('2', 'b')
    """
    return value if isinstance(value, str) else f"{value:.12g}"
