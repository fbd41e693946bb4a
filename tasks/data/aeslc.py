"""E-mails and their subject lines (AESLC), from the data directory or the hub copy.

Zhang & Tetreault, 2019, "This email could save your life: introducing the task of email subject
line generation", https://aclanthology.org/P19-1043. License: CC BY-NC-SA 4.0.
"""

from collections.abc import Mapping
from pathlib import Path

from tasks.data.files import TextFile
from tasks.data.tables import DataSet, Rows, load_table, read_json_lines

FIELDS = {"email_body": str, "subject_line": str}
ANNOTATIONS = ("ann0", "ann1", "ann2")
"""Subjects by other people; the data directory has them in validation and test, the hub copy has
none."""


def load_aeslc(data_dir: Path | None = None, *, cache_dir: Path | None = None) -> DataSet:
    """Load rows with `email_body`, `subject_line` and, where there are any, annotations.

    Args:
        data_dir: A data directory, or None for the environment's.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: It is not on this machine; the message says how to get it.
        DataDamaged: A file is there and is not whole.
    """
    return load_table("aeslc", _read, data_dir, cache_dir=cache_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
    parts, files = {}, []
    fields = {**FIELDS, **dict.fromkeys(ANNOTATIONS, str)}
    for part, stem in (("train", "train"), ("validation", "dev"), ("test", "test")):
        path = folder / f"{stem}.jsonl.gz"
        parts[part], file = read_json_lines(path, fields, may_lack=ANNOTATIONS)
        files.append(file)
    return parts, files
