"""The tables of published pages, read from their Markdown."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Row = dict[str, str]
"""Text by head of the column; of two heads that are alike the second has ` (2)` after it."""


@dataclass(frozen=True)
class Printed:
    """One table, with the heading or the summary above it."""

    heading: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]


def unescaped(text: str) -> str:
    """Text as it was before Markdown."""
    return html.unescape(re.sub(r"\\(.)", r"\1", text)).strip()


def cells(line: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def tables(page: Path, head: str) -> list[Printed]:
    """Tables that have a column of this name."""
    found, heading = [], ""
    lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
    for at, line in enumerate(lines):
        above = re.match(r"#+ (.*)|<details><summary>(.*)</summary>", line)
        heading = unescaped(above[1] or above[2]) if above else heading
        if line.startswith("|") and not lines[at - 1].startswith("|"):
            end = next(n for n in range(at, len(lines)) if not lines[n].startswith("|"))
            found.append(_table(heading, lines[at:end]))
    return [one for one in found if head in one.heads]


def _table(heading: str, lines: list[str]) -> Printed:
    """A table of its lines: heads, their sides, rows."""
    heads: list[str] = []
    for one in (unescaped(text.split("<br>")[0]) for text in cells(lines[0])):
        heads.append(f"{one} (2)" if one in heads else one)
    rows = [dict(zip(heads, cells(line), strict=True)) for line in lines[2:]]
    return Printed(heading, tuple(heads), tuple(rows))


def name_of(cell: str) -> str:
    """The variant of a cell, without its link, its marks, its weight and its quotes."""
    text = re.sub(r" \*\(.*?\)\*", "", cell).replace("**", "").replace("`", "").strip()
    linked = re.match(r"\[(.*)\]\(", text)
    return unescaped(linked[1] if linked else text)


def marks_of(cell: str) -> list[str]:
    return [unescaped(one) for one in re.findall(r" \*\((.*?)\)\*", cell)]


def numbers(text: str) -> list[str]:
    """The numbers of a text, in their order, as they are printed."""
    return re.findall(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", unescaped(text))


def says(printed: str, value: float) -> bool:
    """Whether a printed number is a value, rounded to its last digit."""
    digits, _, exponent = printed.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return bool(np.isclose(float(f"{digits}e{exponent or 0}"), value, rtol=1e-9, atol=0.501 * unit))


def says_p(printed: str, value: float) -> bool:
    """The same of a p value, which may be printed as less than something."""
    text = unescaped(printed)
    return value < float(text[1:]) if text.startswith("<") else says(text, value)
