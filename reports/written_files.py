"""Files of a report, written so that nothing outside its folder changes.

A run folder may come from somebody else, with links in the place of files. A draft that is renamed
replaces a link and leaves alone what it leads to.
"""

from pathlib import Path

from bench.api.errors import InvalidConfig
from bench.api.plain_text import storable
from bench.api.whole_file import written_whole
from reports.blocks import PROGRAM
from reports.markdown import SHORT

CLAIMS = "claims.md"
"""The page of claims."""


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


def holds_a_report(folder: Path) -> bool:
    """Whether a folder has an earlier report, which may be replaced."""
    return any(map(_is_a_report, (folder / SHORT, folder / CLAIMS)))


def _is_a_report(path: Path) -> bool:
    """Whether a file is the Markdown of a page of ours."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.startswith(f"# {PROGRAM}: ")


def write_file(path: Path, text: str) -> Path:
    """Replace a file as a whole; a link is replaced and not followed."""
    with written_whole(path, durable=False) as draft:
        # what somebody wrote into a ledger may be no text
        draft.write_text(storable(text), encoding="utf-8", newline="\n")
    return path
