"""WikiText-2, as far as the mirror holds it: its validation and its test part.

Merity et al., 2017, "Pointer sentinel mixture models", https://arxiv.org/abs/1609.07843, section
4.2. It is the tokenized form, `wikitext-2-v1`, in which rare words are `<unk>` already.
"""

from collections.abc import Mapping
from pathlib import Path

from tasks.sources.mirror import TextFile, read_text
from tasks.sources.tables import Rows, Table, load_table

NAME = "wikitext2"
FILES = {"validation": "valid.txt.gz", "test": "test.txt.gz"}


def load_wikitext2(data_dir: Path | None = None) -> Table:
    """One row a paragraph, heading or blank line, with the field `text`."""
    return load_table(NAME, _read, data_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
    files = {part: read_text(folder / name, allow_blank=True) for part, name in FILES.items()}
    parts = {part: tuple({"text": line} for line in file.lines) for part, file in files.items()}
    return parts, list(files.values())
