"""IMDB: film reviews of many sentences with their sentiment, 8334 for training and 5000 to test.

Maas et al., 2011, "Learning word vectors for sentiment analysis",
https://aclanthology.org/P11-1015. No license is stated, so no review is shown.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.sources.mirror import TextFile
from tasks.sources.tables import Rows, Table, held_out, load_table, numbered, read_json_lines

EVERY = 10
"""One of so many training rows is held out for validation; the data set has no such part."""

_FILES = {"train": "train.jsonl.gz", "test": "test.jsonl.gz"}
_BREAK = re.compile(r"<br ?/?>|\s+")
_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"')\]])\s+")


def load_imdb(data_dir: Path | None = None) -> Table:
    """Load IMDB with the fields `text` and `label` (0 negative, 1 positive).

    Raises:
        DataUnavailable: It is not in the mirror.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("imdb", _read, data_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts: dict[str, Rows] = {}
    for part, name in _FILES.items():
        rows, file = read_json_lines(folder / name, ("text", "label"))
        parts[part] = numbered(rows, "label", {0: 0, 1: 1}, file.path)
        files.append(file)
    parts["train"], parts["validation"] = held_out(parts["train"], EVERY)
    return parts, files


def sentences(text: str) -> list[str]:
    """Cut a review after each full stop, question or exclamation mark that a space follows.

    >>> sentences("Slow at first.<br /><br />Then (and how!) it moves. 7.5 of 10")
    ['Slow at first.', 'Then (and how!)', 'it moves.', '7.5 of 10']
    """
    return [part.strip() for part in _END.split(_BREAK.sub(" ", text)) if part.strip()]
