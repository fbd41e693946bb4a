"""Inflected words of the SIGMORPHON 2017 shared task, from the data directory.

Cotterell et al., 2017, "CoNLL-SIGMORPHON 2017 shared task: universal morphological reinflection in
52 languages", https://aclanthology.org/K17-2001. Words come from Wiktionary (CC BY-SA); the
repository states no license.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tasks.data.files import TextFile
from tasks.data.tables import DataSet, Rows, load_table, read_table

Language = Literal["english", "german", "finnish", "turkish"]
Size = Literal["low", "medium", "high"]
FIELDS = ("lemma", "form", "tags")


def load_sigmorphon2017(language: Language, size: Size, data_dir: Path | None = None) -> DataSet:
    """Load rows with `lemma`, `form` and `tags`, which are joined by semicolons.

    Args:
        language: One of four.
        size: Training pairs: `low` 100, `medium` 1000, `high` 10000; 1000 each for the rest.
        data_dir: A data directory, or None for the environment's.

    Raises:
        DataUnavailable: It is not on this machine; the message says how to get it.
        DataDamaged: A file is there and is not whole.
    """

    def read(folder: Path) -> tuple[Mapping[str, Rows], list[TextFile]]:
        stems = {
            "train": f"{language}-train-{size}",
            "validation": f"{language}-dev",
            "test": f"{language}-uncovered-test",
        }
        parts, files = {}, []
        for part, stem in stems.items():
            parts[part], file = read_table(folder / f"{stem}.gz", FIELDS)
            files.append(file)
        return parts, files

    return load_table("sigmorphon2017", read, data_dir)
