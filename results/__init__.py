"""Rows, the store that never loses one, tidy frames and honest statistics."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from results.run import Run

__all__ = ["load"]


def load(path: Path | str) -> "Run":
    """Read a run folder or a published pack.

    Raises:
        NotARunFolder: The path is neither.
        OtherSchema: It was written by a version of the bench with other rows.
    """
    from results.run import load_run  # noqa: PLC0415  pandas costs half a second

    return load_run(path)
