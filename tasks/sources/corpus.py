"""Parallel text in memory: what every source of translations returns."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Lines = tuple[str, ...]
Part = Mapping[str, Lines]
"""Language -> lines; line i of every language says the same."""

Origin = Literal["mirror", "hub"]


@dataclass(frozen=True, kw_only=True)
class ParallelCorpus:
    """Sentences in several languages, line-aligned, in three parts.

    >>> part = {"de": ("ein hund",), "en": ("a dog",)}
    >>> corpus = ParallelCorpus(
    ...     name="tiny", languages=("de", "en"), train=part, validation=part, test=part,
    ...     license="CC0-1.0", license_open=True, origin="mirror", files={},
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
