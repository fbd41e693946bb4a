"""AG News: descriptions of news with their topic, 10001 of the training part and the whole test.

Zhang et al., 2015, "Character-level convolutional networks for text classification",
https://arxiv.org/abs/1509.01626, section 4. Research and non-commercial use.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.sources.mirror import TextFile
from tasks.sources.tables import Rows, Table, held_out, load_table, numbered, read_table

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
EVERY = 10
"""One of so many training rows is held out for validation; the data set has no such part."""

_FILES = {"train": "dev.tsv.gz", "test": "test.tsv.gz"}
_CODE = re.compile(r" ?#(\d{2,5});")


def load_ag_news(data_dir: Path | None = None) -> Table:
    """Load AG News with the fields `text` (no title) and `label`, a place in `TOPICS`.

    Raises:
        DataUnavailable: It is not in the mirror.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("ag_news", _read, data_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts: dict[str, Rows] = {}
    for part, name in _FILES.items():
        rows, file = read_table(folder / name, ("text", "label"))
        known = {topic: number for number, topic in enumerate(TOPICS)}
        rows = numbered(rows, "label", known, file.path)
        parts[part] = tuple({**row, "text": plain(row["text"])} for row in rows)
        files.append(file)
    parts["train"], parts["validation"] = held_out(parts["train"], EVERY)
    return parts, files


def plain(text: str) -> str:
    r"""Undo what is left of HTML: codes of marks, and backslashes of line ends.

    >>> plain("It #39;s here\\today")
    "It's here today"
    """
    return _CODE.sub(lambda found: chr(int(found[1])), text).replace("\\", " ")
