"""IMDB: film reviews of many sentences with their sentiment.

Maas et al., 2011, "Learning word vectors for sentiment analysis",
https://aclanthology.org/P11-1015. No license is stated, so no review is shown.

The data directory has 8334 reviews for training and 5000 to test, of both labels in turn. The hub's
`stanfordnlp/imdb` has all 25000 and 25000, first the negative ones. Its first rows all have one
label, so rows are shuffled here, always in the same way.
"""

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.data.files import TextFile
from tasks.data.hub_copies import REPORT_IT, HubCopy
from tasks.data.tables import DataSet, Rows, held_out, load_table, numbered, read_json_lines

EVERY = 10
"""One of so many training rows is held out for validation; the data set has no such part."""

_FILES = {"train": "train.jsonl.gz", "test": "test.jsonl.gz"}
_LABELS = {0: 0, 1: 1}
_BREAK = re.compile(r"<br ?/?>|\s+")
_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"')\]])\s+")


def load_imdb(data_dir: Path | None = None) -> DataSet:
    """Load IMDB with the fields `text` and `label` (0 negative, 1 positive).

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("imdb", _read, data_dir, from_hub=_from_hub)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts: dict[str, Rows] = {}
    for part, name in _FILES.items():
        rows, file = read_json_lines(folder / name, {"text": str, "label": int})
        rows = numbered(rows, "label", _LABELS, file.path)
        parts[part] = tuple({"text": row["text"], "label": row["label"]} for row in rows)
        files.append(file)
    parts["train"], parts["validation"] = held_out(parts["train"], EVERY)
    return parts, files


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    parts: dict[str, Rows] = {}
    for part in _FILES:
        rows = numbered(copy.splits[part], "label", _LABELS, copy.path(part), remedy=REPORT_IT)
        parts[part] = tuple(random.Random(0).sample(rows, len(rows)))
    parts["train"], parts["validation"] = held_out(parts["train"], EVERY)
    return parts


def sentences(text: str) -> list[str]:
    """Cut a review after each full stop, question or exclamation mark that a space follows.

    >>> sentences("Slow at first.<br /><br />Then (and how!) it moves. 7.5 of 10")
    ['Slow at first.', 'Then (and how!)', 'it moves.', '7.5 of 10']
    """
    return [part.strip() for part in _END.split(_BREAK.sub(" ", text)) if part.strip()]
