"""AG News: descriptions of news with their topic.

Zhang et al., 2015, "Character-level convolutional networks for text classification",
https://arxiv.org/abs/1509.01626, section 4. Research and non-commercial use.

The data directory has 10001 texts of the training part and the whole test, both without titles and
with the quotes of CSV. The hub's `fancyzhx/ag_news` has all 120000 and 7600; a text there is the
title, a space and the description. What CSV and HTML have left in a text is undone.
"""

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.data.files import TextFile
from tasks.data.hub_copies import REPORT_IT, HubCopy
from tasks.data.tables import DataSet, Rows, held_out, load_table, numbered, read_table

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
EVERY = 10
"""One of so many training rows is held out for validation; the data set has no such part."""

_FILES = {"train": "dev.tsv.gz", "test": "test.tsv.gz"}
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_CODE = re.compile(
    r"(?:&| ?)(?:\bamp;)*(#\d{2,5}|#x[\da-f]{2,5}|\b(?:quot|amp|hellip|nbsp|lt|gt));"
)
"""A character reference of HTML. A space may replace its ampersand."""
_TAG = re.compile(r"</?(?:a|b|br|cite|em|font|i|img|nobr|p|strong)(?=[\s/>])[^<>]*>", re.IGNORECASE)


def load_ag_news(data_dir: Path | None = None) -> DataSet:
    """Load AG News with the fields `text` and `label`, a position in `TOPICS`.

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("ag_news", _read, data_dir, from_hub=_from_hub)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts: dict[str, Rows] = {}
    for part, name in _FILES.items():
        rows, file = read_table(folder / name, ("text", "label"))
        known = {topic: number for number, topic in enumerate(TOPICS)}
        rows = numbered(rows, "label", known, file.path)
        parts[part] = tuple({**row, "text": unquoted(row["text"])} for row in rows)
        files.append(file)
    return _parts(parts), files


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    known = {number: number for number in range(len(TOPICS))}
    return _parts(
        {
            part: numbered(copy.splits[part], "label", known, copy.path(part), remedy=REPORT_IT)
            for part in _FILES
        }
    )


def _parts(found: Mapping[str, Rows]) -> Mapping[str, Rows]:
    """Texts without HTML, and a part for validation."""
    parts: dict[str, Rows] = {
        part: tuple({**row, "text": plain(row["text"])} for row in rows)
        for part, rows in found.items()
    }
    parts["train"], parts["validation"] = held_out(parts["train"], EVERY)
    return parts


def unquoted(text: str) -> str:
    """Undo the quotes of CSV, which enclose a text and double those inside.

    >>> unquoted('"Stop," she said.'), unquoted('"He said ""stop"" twice."')
    ('"Stop," she said.', 'He said "stop" twice.')
    """
    found = _QUOTED.fullmatch(text)
    return found[1].replace('""', '"') if found else text


def plain(text: str) -> str:
    r"""Undo what is left of HTML, and the backslashes of line ends.

    Character references become characters. Tags are removed, and what they enclose stays. The
    symbol of a share, such as `<T.N>`, is no tag and stays, too.

    >>> plain("It #39;s here\\today")
    "It's here today"
    >>> plain("&lt;A HREF= quot;x quot;&gt;AT amp;T&lt;/A&gt; &lt;T.N&gt; fell").split()
    ['AT&T', '<T.N>', 'fell']
    """
    marks = _CODE.sub(lambda found: html.unescape(f"&{found[1]};"), text)
    return _TAG.sub(" ", marks.replace("\\", " "))
