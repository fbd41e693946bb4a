"""WikiText-2: articles as lines of words, whole from the hub or without its training part.

Merity et al., 2017, "Pointer sentinel mixture models", https://arxiv.org/abs/1609.07843, section
4.2. It is the tokenized form, `wikitext-2-v1`, in which rare words are `<unk>` already.

A data directory may lack the training part, which is large. The hub has all three; its rows keep
the end of their line and are empty where a line is blank, while the files, and so the rows here,
have no line end and a space.
"""

from collections.abc import Mapping
from pathlib import Path

from tasks.data.files import TextFile, read_text
from tasks.data.hub_copies import HubCopy
from tasks.data.paths import may_lack
from tasks.data.tables import DataSet, Rows, load_table

NAME = "wikitext2"
FILES = {"train": "train.txt.gz", "validation": "valid.txt.gz", "test": "test.txt.gz"}
HELD_OUT = ("validation", "test")


def load_wikitext2(data_dir: Path | None = None, *, whole: bool = False) -> DataSet:
    """One row a paragraph, heading or blank line, with the field `text`.

    Args:
        data_dir: The data directory.
        whole: Load the training part too; a data directory without it is passed over for the hub
        copy.

    Raises:
        DataUnavailable: The parts are not on this machine.
        DataDamaged: A file is there and is not whole.
    """
    parts = tuple(FILES) if whole else HELD_OUT

    def read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
        files = {part: read_text(folder / FILES[part], allow_blank=True) for part in parts}
        rows = {part: tuple({"text": line} for line in file.lines) for part, file in files.items()}
        return rows, list(files.values())

    needs = may_lack(NAME) if whole else ""
    return load_table(NAME, read, data_dir, from_hub=_from_hub, splits=parts, needs=needs)


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    return {
        part: tuple({"text": row["text"].removesuffix("\n") or " "} for row in rows)
        for part, rows in copy.splits.items()
    }
