"""Tiny Shakespeare: parts of plays as one text, cut 90/5/5 as is usual.

Karpathy, 2015, https://github.com/karpathy/char-rnn, `data/tinyshakespeare/input.txt`.

The hub's `karpathy/tiny_shakespeare` is a script. `Trelis/tiny-shakespeare` has the text itself as
a file beside tables whose pieces overlap; that file is fetched, a row a line.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.api.errors import DataDamaged
from tasks.data.files import TextFile, read_text
from tasks.data.hub_copies import HubCopy
from tasks.data.tables import DataSet, Rows, load_table

NAME = "tinyshakespeare"


def load_tinyshakespeare(data_dir: Path | None = None) -> DataSet:
    """One row a part with the field `text`."""
    return load_table(NAME, _read, data_dir, from_hub=_from_hub)


def _read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
    file = read_text(folder / "input.txt.gz", allow_blank=True)
    return _cut(file.path, file.lines), [file]


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    return _cut(copy.path("train"), [row["text"] for row in copy.splits["train"]])


def _cut(path: Path, lines: Sequence[str]) -> Mapping[str, Rows]:
    text = "\n".join(lines) + "\n"
    if len(text) < 20:
        raise DataDamaged(
            f"{path}: line {len(lines)} ends a text of {len(text)} characters, too few "
            f"to be cut into three parts; copy the file again from its source."
        )
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    cut = {"train": text[:first], "validation": text[first:second], "test": text[second:]}
    return {part: ({"text": found},) for part, found in cut.items()}
