"""SST-2: whole sentences of film reviews with their sentiment, and labels of the test.

Socher et al., 2013, "Recursive deep models for semantic compositionality over a sentiment
treebank", https://aclanthology.org/D13-1170. No license is stated, so no sentence of it is shown.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.data.files import TextFile
from tasks.data.tables import DataSet, Rows, load_table, numbered, read_table

_FILES = {"train": "train.tsv.gz", "validation": "dev.tsv.gz", "test": "test.tsv.gz"}


def load_sst2_sentences(data_dir: Path | None = None, *, cache_dir: Path | None = None) -> DataSet:
    """Load SST-2 with the fields `text` and `label` (0 negative, 1 positive).

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("sst2_sentences", _read, data_dir, cache_dir=cache_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    files: list[TextFile] = []
    parts: dict[str, Rows] = {}
    for part, name in _FILES.items():
        rows, file = read_table(folder / name, ("text", "label"))
        parts[part] = numbered(rows, "label", {"0": 0, "1": 1}, file.path)
        files.append(file)
    return parts, files
