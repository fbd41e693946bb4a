"""What a report is made of, before it is Markdown or HTML.

Every text here is plain: nothing is markup, so each writer escapes all of it. A name between
backticks is shown as code where a sentence or a cell stands (`reports/code_spans.py`).
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

NO_VALUE = "\N{EM DASH}"
"""An empty field; not a hyphen, which looks like a minus."""

PROGRAM = "Attention bench"
"""What titles begin with."""
EXPLAINED = (
    "Words are explained in `docs/glossary.md`, numbers in `docs/numbers.md`, and tests in "
    "`docs/statistics.md`; `docs/limits.md` says what the bench does not show."
)
"""Where a reader finds what a page cannot repeat."""
KNOWN_LIMITS = "Known limits of this run"
"""Head of `Document.notes`."""

Tone = Literal["plain", "note", "warning"]

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def clean(text: object) -> str:
    r"""Make foreign text safe to print: no control, direction or half characters.

    >>> clean("a\x00b")
    'a�b'
    """
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    return _UNPRINTABLE.sub("\ufffd", whole)


def one_line(text: object) -> str:
    r"""The same on one line, for titles; an example may be a whole function of a program.

    >>> one_line("def f(x):\n    return x")
    'def f(x): return x'
    """
    return " ".join(clean(text).split())


def safe_url(url: str) -> str:
    """Keep web addresses; anything that could run code or read a disk becomes empty.

    >>> safe_url("javascript:alert(1)"), safe_url("https://arxiv.org/abs/1409.0473")
    ('', 'https://arxiv.org/abs/1409.0473')
    """
    return url if re.fullmatch(r"https?://[^\s\"'<>`\\]+", url) else ""


@dataclass(frozen=True)
class Paragraph:
    """One paragraph."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bullets:
    """An unordered list of paragraphs."""

    items: tuple[str, ...]
    heads: tuple[str, ...] = ()
    """What each item is about, or none at all."""


@dataclass(frozen=True)
class CodeBlock:
    """Lines to copy."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """Head of one table column."""

    title: str
    unit: str = ""
    numeric: bool = False
    better: str = ""
    """`higher` or `lower`: which way the first click sorts."""
    help: str = ""
    """Longer explanation, shown on hovering."""
    counts: str = ""
    """What its numbers count, where rows that are left out should be told with their sum."""


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One field of a table."""

    text: str
    sort: float | str | None = None
    """What sorting compares; the text if None."""
    href: str = ""
    """A web address, or `#anchor` inside the report."""
    code: bool = False
    marks: tuple[str, ...] = ()
    """Short labels behind the text, such as `control`."""
    help: str = ""
    """Longer explanation, shown on hovering: why a value is missing, or has no interval."""
    best: bool = False
    """Tied with the best value of its column."""


@dataclass(frozen=True, kw_only=True)
class TableBlock:
    """A sortable and filterable table."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences below the table."""
    anchors: tuple[str, ...] = ()
    """One anchor a row, or none at all."""
    dimmed: tuple[bool, ...] = ()
    """Rows that are shown but take no part, one flag a row, or none at all."""
    folded: bool = False
    """Long tables that a reader opens on demand."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing with words for those who cannot see it."""

    key: str
    title: str
    description: str
    caption: str
    svg: str
    still: str = ""
    """Key of the view to step through that shows the same; pages without scripts have this."""


@dataclass(frozen=True, kw_only=True)
class AnsweredExample:
    """One example that a model answered."""

    source: str
    reference: str
    outputs: tuple[tuple[str, str], ...]
    """Variant and what it wrote."""


@dataclass(frozen=True, kw_only=True)
class SampleBlock:
    """Outputs of several variants on the same examples."""

    title: str
    samples: tuple[AnsweredExample, ...]


@dataclass(frozen=True, kw_only=True)
class StepsBlock:
    """Weights that a reader walks through, output by output; the still figure follows it."""

    key: str
    title: str
    data: dict[str, Any]
    """Plain values with clean texts, as `reports.steps` describes them."""


PointKind = Literal["variant", "baseline", "uniform", "control"]


@dataclass(frozen=True, kw_only=True)
class QualityPoint:
    """One variant in the figure of quality against cost."""

    name: str
    """Label as it is printed beside the point."""
    quality: float
    """Mean quality; `QualityCost.quality_title` says of what."""
    low: float
    """Lower end of the interval of the quality; `quality` itself where none is known."""
    high: float
    """Upper end of the interval of the quality."""
    cost: float
    """Cost; `QualityCost.cost_title` says of what."""
    on_front: bool
    """Whether no other point is better and cheaper."""
    kind: PointKind = "variant"


@dataclass(frozen=True, kw_only=True)
class QualityCost:
    """Quality against cost of every variant: what the overview figure draws."""

    points: tuple[QualityPoint, ...]
    quality_title: str
    """Title of the axis of quality, with its unit."""
    cost_title: str
    """Title of the axis of cost, with its unit."""
    better: Literal["higher", "lower"] = "higher"
    limits: tuple[float, float] = (-math.inf, math.inf)
    """Least and greatest quality that the metric allows; nothing is drawn outside."""
    title: str = ""
    caption: str = ""


Block = Paragraph | Bullets | CodeBlock | TableBlock | Figure | SampleBlock | StepsBlock
SectionGroup = Literal["use of attention", "summary", "details"]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A headed part of the report."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    group: SectionGroup = "details"
    """Where it stands: details go to the second file of the Markdown twin."""
    folded: bool = False
    """Whether a page shows its title alone until it is opened."""
    synopsis: str = ""
    """One line that a page prints beside the title of a folded section."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The whole report."""

    title: str
    lead: str
    headline: str = ""
    """One sentence of result."""
    notes: tuple[str, ...] = ()
    """Known limits of the run, before anything else that could be misread without them."""
    choices: TableBlock | None = None
    """A row a need, as many as it has room for: the variant to choose, the evidence, the cost."""
    overview: QualityCost | None = None
    """Quality against cost, as data."""
    overview_figure: Figure | None = None
    """The same as a drawing."""
    facts: tuple[tuple[str, str], ...] = ()
    """Pairs shown under the title: preset, cells, date."""
    commands: tuple[str, ...] = ()
    """What computed it, in order."""
    sections: tuple[Section, ...] = field(default=())

    def of_group(self, *groups: SectionGroup) -> tuple[Section, ...]:
        """Sections of some groups, in the order of the report."""
        return tuple(section for section in self.sections if section.group in groups)
