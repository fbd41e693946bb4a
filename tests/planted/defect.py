"""A planted defect: a mistake that somebody could make, kept as data, and what must notice it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.planted.planting import ROOT

FOLDER = Path(__file__).parent / "defects"
"""A file of defects an axis; each defect is a table `[name-of-the-mistake]`."""


class Moved(Exception):
    """The lines that a defect replaces are not in the code as they were."""


@dataclass(frozen=True, kw_only=True)
class Defect:
    """One mistake in one place."""

    name: str
    axis: str
    """The file of defects that holds it."""
    file: str
    """Path of the code below the root of the project."""
    old: str
    """What is replaced; the file has it exactly once."""
    new: str
    variant: str = ""
    """Selector whose certificate must turn red; empty where no certificate looks there."""
    check: str = ""
    """The check that must say so."""
    test: str = ""
    """Unit tests that must fail, where no certificate looks; a file, or one test of it."""
    sample: bool = False
    """Whether the quick tests plant it, too."""

    def __post_init__(self) -> None:
        """Check that one of the two must notice it."""
        if bool(self.variant and self.check) == bool(self.test):
            raise ValueError(f"{self.name}: name a variant and a check, or a unit test.")

    @property
    def changed(self) -> str:
        """The whole text of the file with the defect.

        Raises:
            Moved: The lines to replace are gone, or there are several of them.
        """
        text = (ROOT / self.file).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise Moved(
                f"{self.axis}.toml, {self.name}: {self.file} has {count} places with\n{self.old}\n"
                "instead of one; write the lines as they are now."
            )
        return text.replace(self.old, self.new)


def defects() -> list[Defect]:
    """All of them, by axis."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        found += [Defect(name=name, axis=path.stem, **table) for name, table in tables.items()]
    return found
