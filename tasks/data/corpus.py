"""Parallel text in memory: what every source of translations returns."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Lines = tuple[str, ...]
Part = Mapping[str, Lines]
"""Language -> lines; line i has the same meaning in every language."""

Origin = Literal["directory", "hub"]


def origin_note(name: str, origin: Origin, files: Mapping[str, str], revision: str) -> str:
    """Where data came from, with the start of every file's SHA-256.

    >>> origin_note("tiny", "directory", {"a.gz": "0123456789abcdef"}, "")
    'tiny from the directory: a.gz 0123456789ab'
    """
    hashes = ", ".join(f"{file} {digest[:12]}" for file, digest in sorted(files.items()))
    at = f" at {revision}" if revision else ""
    return f"{name} from the {origin}{at}: {hashes}"


def parts_note(parts: Mapping[str, Iterable[object]]) -> str:
    """Rows of every part of a split that is made here, with the start of the SHA-256 of them all.

    Files have hashes of their own; this one says that a draw, or a cut, has given the same rows in
    the same order again.

    >>> parts_note({"train": [("a", 1), ("b", 0)], "test": [("c", 1)]})
    'train 2 rows 1bd005b2c5ad, test 1 rows ef88b4206455'

    Args:
        parts: Name of a part -> its rows, of what JSON can hold.
    """
    told = []
    for name, rows in parts.items():
        lines = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        told.append(f"{name} {len(lines)} rows {digest[:12]}")
    return ", ".join(told)


@dataclass(frozen=True, kw_only=True)
class ParallelCorpus:
    """Sentences in several languages, line-aligned, in three parts.

    >>> part = {"de": ("ein hund",), "en": ("a dog",)}
    >>> corpus = ParallelCorpus(
    ...     name="tiny", languages=("de", "en"), train=part, validation=part, test=part,
    ...     license="CC0-1.0", license_open=True, origin="directory", files={},
    ... )
    >>> corpus.train["en"][0], corpus.hash[:12]
    ('a dog', '0321a5b16321')
    """

    name: str
    languages: tuple[str, ...]
    """The languages asked for, in that order."""
    train: Part
    validation: Part
    test: Part
    license: str
    """What the source says about use, in words."""
    license_open: bool
    """Whether sentences may be shown in a committed report."""
    origin: Origin
    files: Mapping[str, str]
    """File name -> SHA-256 of the bytes that were read."""
    revision: str = ""
    """Commit of the source, where it is known."""

    @property
    def note(self) -> str:
        """Where the text came from, for a report."""
        return origin_note(self.name, self.origin, self.files, self.revision)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text alone: equal text has equal hashes, wherever it came from."""
        digest = hashlib.sha256(self.name.encode())
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        for title, part in parts.items():
            for language in sorted(self.languages):
                lines = part[language]
                digest.update(f"\0{title}\0{language}\0{len(lines)}\0".encode())
                digest.update("\n".join(lines).encode())
        return digest.hexdigest()
