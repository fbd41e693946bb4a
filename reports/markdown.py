"""The report as Markdown that GitHub renders: a short file, and one with the details."""

import html
import re
from collections.abc import Callable
from urllib.parse import quote

from reports.blocks import (
    KNOWN_LIMITS,
    Block,
    Bullets,
    CodeBlock,
    Document,
    Figure,
    Paragraph,
    SampleBlock,
    Section,
    StepsBlock,
    TableBlock,
    TableCell,
    clean,
    one_line,
    safe_url,
)
from reports.code_spans import parted
from reports.contents import contents
from reports.numbers import counted
from reports.prose import join

_SPECIAL = re.compile(r"([\\`*\[\]|~$#])")
_EDGE_UNDERSCORES = re.compile(r"(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")
_BESIDE = re.compile(r"[\w-]+(?:/[\w-]+)*\.md")
"""A page beside this one."""
_KEPT = ":/?#[]@!$&'*+,;=%~"
"""Of an address, what means something there and nothing in Markdown."""
FIGURES = "figures"
SHORT, DETAILS = "report.md", "details.md"
MOST_COMMANDS = 12
SUMMARY_ROWS = 40
"""Of a table in the short file."""
MOST_ROWS = 300
"""Of a folded table; GitHub does not render files of a megabyte."""


def twin(document: Document) -> str:
    """Write what people paste into an issue: the result, the choices and the summary.

    Its tables have at most `SUMMARY_ROWS` rows, whatever the size of the run; `details` has the
    rest.
    """
    facts = " · ".join(f"**{escape(name)}** {escape(fact)}" for name, fact in document.facts)
    shown, left = document.commands[:MOST_COMMANDS], document.commands[MOST_COMMANDS:]
    parts = [
        f"# {escape(document.title)}",
        f"**{with_code(document.headline)}**" if document.headline else "",
        _notes(document),
        table_text(document.choices) if document.choices else "",
        _figure(document.overview_figure) if document.overview_figure else "",
        with_code(document.lead),
        facts,
        _code("\n".join(shown)) if shown else "",
        f"[{DETAILS}]({DETAILS}) has {counted(len(left), 'more command')}." if left else "",
        *(_section(section, SUMMARY_ROWS) for section in document.of_group("summary")),
        _contents(document),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def details(document: Document) -> str:
    """Write all that `twin` leaves out; figures are links to `figures/<key>.svg`."""
    title = f"{document.title}: details"
    shown = [
        *document.of_group("use of attention", "details"),
        *(section for section in document.of_group("summary") if _is_cut(section)),
    ]
    parts = [
        f"# {escape(title)}",
        f"The result, the choices and the summary are in [{SHORT}]({SHORT}).",
        _notes(document),
        contents(title, shown, escape),
        _code("\n".join(document.commands)) if len(document.commands) > MOST_COMMANDS else "",
        *(_section(section) for section in shown),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _is_cut(section: Section) -> bool:
    """Whether the short file leaves rows of a table out, which are then among the details."""
    tables = (block for block in section.blocks if isinstance(block, TableBlock))
    return any(len(table.rows) > SUMMARY_ROWS for table in tables)


def whole(document: Document) -> str:
    """Write a document of a single file; figures are links to `figures/<key>.svg`."""
    parts = [
        f"# {escape(document.title)}",
        f"**{with_code(document.headline)}**" if document.headline else "",
        with_code(document.lead),
        _code("\n".join(document.commands)) if document.commands else "",
        *(_section(section) for section in document.sections),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _notes(document: Document) -> str:
    """Known limits of the run, as a box that GitHub draws."""
    if not document.notes:
        return ""
    items = "\n".join(f"> - {with_code(note)}" for note in document.notes)
    return f"> [!WARNING]\n> **{KNOWN_LIMITS}**\n>\n{items}"


def _contents(document: Document) -> str:
    """One line that says what is in the second file."""
    titles = [section.title for section in document.of_group("use of attention", "details")]
    return f"More in [{DETAILS}]({DETAILS}): {escape('; '.join(titles))}." if titles else ""


def escape(text: str) -> str:
    r"""Make plain text mean itself in Markdown.

    >>> escape("a|b <script> *x* shaw_rpr _y")
    'a\\|b &lt;script&gt; \\*x\\* shaw_rpr \\_y'
    """
    return _escaped(one_line(text))


def with_code(text: str) -> str:
    r"""Make a sentence mean itself, but show names between backticks as code.

    >>> with_code("a|b of `head=gqa[kv_heads=1]`, `<b>`")
    'a\\|b of `head=gqa[kv_heads=1]`, \\`&lt;b&gt;\\`'
    """
    pieces = parted(one_line(text))
    return "".join(
        code_span(piece) if at % 2 else _escaped(piece) for at, piece in enumerate(pieces)
    )


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\1", text)
    return _EDGE_UNDERSCORES.sub(lambda found: "\\_" * len(found[0]), text)


def code_span(text: str) -> str:
    r"""Inline code that survives backticks and table cells.

    >>> code_span("a|b"), code_span("x`y")
    ('`a\\|b`', '`` x`y ``')
    """
    text = one_line(text).replace("|", "\\|")
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(len(run) for run in re.findall(r"`+", text)))
    return f"{fence} {text} {fence}"


def _code(text: str) -> str:
    text = clean(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _section(section: Section, most_rows: int | None = None) -> str:
    """A headed part; its tables are cut at so many rows, where that is asked."""
    blocks = [
        table_text(block, most_rows) if isinstance(block, TableBlock) else _block(block)
        for block in section.blocks
    ]
    parts = [f"## {escape(section.title)}", with_code(section.synopsis), *blocks]
    return "\n\n".join(part for part in parts if part)


def _block(block: Block) -> str:
    writers: dict[type, Callable[..., str]] = {
        Paragraph: _text,
        Bullets: _bullets,
        CodeBlock: lambda code: _code(code.text),
        TableBlock: table_text,
        Figure: _figure,
        SampleBlock: _samples,
        StepsBlock: lambda steps: f"### {escape(steps.title)}",
    }
    return writers[type(block)](block)


def _text(text: Paragraph) -> str:
    marker = {"plain": "", "note": "> [!NOTE]\n> ", "warning": "> [!WARNING]\n> "}[text.tone]
    return marker + with_code(text.text)


def _bullets(bullets: Bullets) -> str:
    heads = [f"**{escape(head)}.** " for head in bullets.heads] or [""] * len(bullets.items)
    return "\n".join(
        f"- {head}{with_code(item)}" for head, item in zip(heads, bullets.items, strict=True)
    )


def _figure(figure: Figure) -> str:
    image = f"![{escape(figure.description)}]({FIGURES}/{figure.key}.svg)"
    return f"{image}\n\n**{escape(figure.title.rstrip('.'))}.** {with_code(figure.caption)}"


def table_text(table: TableBlock, most_rows: int | None = None) -> str:
    """A table below its title; folded, or cut after some rows, where there are many."""
    heads = [
        escape(column.title) + (f"<br>{escape(column.unit)}" if column.unit else "")
        for column in table.columns
    ]
    rules = ["---:" if column.numeric else ":---" for column in table.columns]
    most = MOST_ROWS if most_rows is None and table.folded else most_rows
    shown = table.rows[:most]
    rows = [heads, rules, *([_entry(entry) for entry in row] for row in shown)]
    inside = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    notes = "\n\n".join(map(with_code, table.notes))
    inside += f"\n\n{notes}" if notes else ""
    if len(shown) < len(table.rows):
        left = _left_out(table, len(shown))
        where = (
            f"in [{DETAILS}]({DETAILS})"
            if most_rows is not None
            else "on the pages that `bench report` writes"
        )
        inside += f"\n\n{left}: {where}."
    if table.folded:
        # a line of HTML, in which Markdown escapes nothing
        summary = f"{html.escape(one_line(table.title))} ({counted(len(table.rows), 'row')})"
        return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"
    return f"### {escape(table.title)}\n\n{inside}"


def _left_out(table: TableBlock, shown: int) -> str:
    """How many rows are not shown, and what they count together."""
    rest = table.rows[shown:]
    sums = [
        f"{sum(float(row[at].sort or 0) for row in rest):.0f} {column.counts}"
        for at, column in enumerate(table.columns)
        if column.counts
    ]
    rows = counted(len(rest), "more row")
    return f"{rows} with {join(sums)}" if sums else rows


def _entry(entry: TableCell) -> str:
    text = code_span(entry.text) if entry.code else with_code(entry.text)
    if entry.best:
        text = f"**{text}**"
    address = safe_url(entry.href) or (entry.href if _BESIDE.fullmatch(entry.href) else "")
    if address:
        text = f"[{text}]({quote(address, safe=_KEPT)})"
    marks = "".join(f" *({escape(mark)})*" for mark in entry.marks)
    return text + marks


def _samples(block: SampleBlock) -> str:
    parts = [f"### {escape(block.title)}"]
    for sample in block.samples:
        lines = [("source", sample.source), ("reference", sample.reference), *sample.outputs]
        rows = "\n".join(f"| {escape(name)} | {escape(text)} |" for name, text in lines)
        parts.append(f"| | |\n| :--- | :--- |\n{rows}")
    return "\n\n".join(parts)
