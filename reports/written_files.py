"""Files of a report, written so that nothing outside its folder changes.

A run folder may come from somebody else, with links in the place of files. A draft that is renamed
replaces a link and leaves alone what it leads to.
"""

import os
from pathlib import Path

from bench.api.errors import InvalidConfig
from bench.api.plain_text import storable


def own_folder(path: Path) -> Path:
    """Make a folder of a report, unless it is there.

    Raises:
        InvalidConfig: It is a link, so that what it leads to would be changed.
    """
    if path.is_symlink():
        raise InvalidConfig(
            f"{path} is a link, and a report is not written through one; remove it, or give --out."
        )
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_file(path: Path, text: str) -> Path:
    """Replace a file as a whole; a link is replaced and not followed."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(storable(text))  # what somebody wrote into a ledger may be no text
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path
