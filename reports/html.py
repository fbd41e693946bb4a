"""The report as HTML files that open offline."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from reports.blocks import (
    KNOWN_LIMITS,
    Block,
    Document,
    Figure,
    Section,
    StepsBlock,
    TableBlock,
)
from reports.catalog import uncapitalized
from reports.code_spans import parted
from reports.figures import quality_cost_figure
from reports.figures.inline import InlineDrawings
from reports.figures.quality_cost import NARROW

TEMPLATES = Path(__file__).parent / "templates"
ALARMS = ("red certificate", "not ranked", "not certified")
GROUPS = {
    "use of attention": "By use of attention",
    "summary": "Over all tasks",
    "details": "Details",
}
"""Headings of the groups of sections."""
REPORT, LISTS = "report.html", "details.html"
"""Names of the files."""
APART = ("other-costs", "certificates", "holes", "data", "names", "environment", "commands")
"""Keys of sections that are long lists, which a file of their own has."""
LONG_NAME = 18
"""Letters from which on a name may break at its underscores."""


def pages(document: Document) -> dict[str, str]:
    """Write the document as files that link to each other: the report, and its long lists.

    Returns:
        What to write, by name of the file; the lists are there only if there are any.

    """
    apart = tuple(part for part in document.sections if part.key in APART)
    if not apart:
        return {REPORT: page(document)}
    here = tuple(part for part in document.sections if part.key not in APART)
    titles = "; ".join(uncapitalized(part.title) for part in apart)
    lists = Document(
        title=f"{document.title}, details", lead=f"Long lists of one run: {titles}.", sections=apart
    )
    return {
        REPORT: page(replace(document, sections=here), more=(LISTS, titles)),
        LISTS: page(lists, more=(REPORT, "the report")),
    }


def page(document: Document, *, more: tuple[str, str] = ("", "")) -> str:
    """Write the document as one page; every text is escaped by the template engine.

    Args:
        document: What the page shows.
        more: Name of the file that has what this one lacks, and what that is; empty for none.

    """
    anchors = _anchors(document)

    def link(href: str) -> str:
        elsewhere = more[0] and href.startswith("#") and href[1:] not in anchors
        return f"{more[0]}{href}" if elsewhere else href

    inline = InlineDrawings()
    environment = _environment()
    views = _views(document.sections)
    scripts = [_file(name) for name in (("report.js", "steps.js") if views else ("report.js",))]
    body = environment.get_template("body.html.j2").render(
        document=document,
        known_limits=KNOWN_LIMITS,
        overview=_overview(document, inline),
        groups=_groups(document),
        more=more,
        link=link,
        # a page that is made to step through weights starts with them
        viewer_first=views > 0 and document.choices is None and len(document.sections) == 1,
        data_of=data_of,
        alarms=ALARMS,
        kind_of=kind_of,
        drawing=lambda figure: Markup(inline.drawing(figure.svg)),
        sort_key=sort_key,
        breakable=breakable,
        sentence=sentence,
        together=together,
    )
    return environment.get_template("report.html.j2").render(
        title=document.title,
        body=Markup(body),
        css=Markup(_file("report.css") + inline.style_sheet),
        scripts=[Markup(script) for script in scripts],
        hashes=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
    )


@cache
def _environment() -> Environment:
    """The engine with its templates, each compiled once in a process."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = with_code
    return environment


def _anchors(document: Document) -> set[str]:
    """Places of a page that a cell of a table may link to."""
    found = {section.key for section in document.sections}
    for block in (block for section in document.sections for block in section.blocks):
        if isinstance(block, TableBlock):
            found |= {block.key, *block.anchors}
        elif isinstance(block, Figure):
            found.add(block.key)
    return found


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _views(sections: tuple[Section, ...]) -> int:
    """How many views to step through there are."""
    return sum(isinstance(block, StepsBlock) for part in sections for block in part.blocks)


def _groups(document: Document) -> list[tuple[str, list[Section]]]:
    """Headings with their sections, in the order of the document; one group needs no heading."""
    found = [
        (GROUPS[name], [*sections])
        for name, sections in groupby(document.sections, key=lambda section: section.group)
    ]
    return found if len(found) > 1 else [("", sections) for _, sections in found]


def _overview(document: Document, inline: InlineDrawings) -> tuple[Figure, Markup, Markup] | None:
    """The first figure, for wide and for narrow screens, of which one alone is shown."""
    data, figure = document.overview, document.overview_figure
    if data is None or not data.points:
        return None
    figure = figure or quality_cost_figure(data)
    narrow = quality_cost_figure(data, "quality-cost-narrow", NARROW)
    return figure, Markup(inline.drawing(figure.svg)), Markup(inline.drawing(narrow.svg))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def data_of(steps: StepsBlock) -> Markup:
    r"""Values for the script, in which no text can end the element that holds them.

    >>> data_of(StepsBlock(key="k", title="t", data={"a": "</script>"}))
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
    return value if isinstance(value, str) else f"{value:.7g}"


_BREAK = re.compile(r"([_\[/]|(?<!\d),|,(?!\d))(?=\w)")
"""Where a name may break; the comma of a number is no such place."""


def breakable(name: str) -> Markup:
    """A name that a narrow column may break at its underscores and brackets, if it is long.

    >>> breakable("scaled_dot"), breakable("hierarchical_document[words=2]")
    (Markup('scaled_dot'), Markup('hierarchical_<wbr>document[<wbr>words=2]'))
    >>> breakable("an error of 2,803")
    Markup('an error of 2,803')
    """
    safe = str(escape(name))
    return Markup(_BREAK.sub(r"\1<wbr>", safe) if len(name) >= LONG_NAME else safe)


def with_code(text: str, writer: Callable[[str], Markup] = escape) -> Markup:
    """A sentence in which names between backticks are code.

    >>> with_code("`head=gqa` of <b>")
    Markup('<code>head=gqa</code> of &lt;b&gt;')

    Args:
        text: What is written.
        writer: Makes HTML of a piece; escapes it.
    """
    written = map(writer, parted(text))
    return Markup().join(
        Markup("<code>{}</code>").format(piece) if at % 2 else piece
        for at, piece in enumerate(written)
    )


def sentence(text: str) -> Markup:
    """The same in a narrow column, where long names may break.

    >>> sentence("see `short_convolution[gate=sigmoid]`")
    Markup('see <code>short_<wbr>convolution[<wbr>gate=sigmoid]</code>')
    """
    return with_code(text, breakable)


def together(text: str) -> Markup:
    r"""The same for a sentence, whose numbers keep their sign and their interval on one line.

    >>> together("0.9 ± 0.1, p < 0.01")
    Markup('0.9\xa0±\xa00.1, p\xa0&lt;\xa00.01')
    """
    return Markup(re.sub(r" ([±=<]|&lt;) ", "\xa0\\1\xa0", str(sentence(text))))
