"""Files that are replaced as a whole: a reader sees the old one or the new one, never half."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A draft beside a file, which takes its place at the end.

    An error or an interrupt in between leaves the file as it was and no draft. A link in the place
    of the file is replaced and not followed. Several writers may write at once; the last one stays.

    Args:
        path: The file; its folder is made where it is missing.
        durable: Wait until the disk has it, so that it survives a power cut. What can be made again
            need not wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield draft
        if durable:
            _sync_file(draft)
        draft.replace(path)
    except BaseException as error:
        with suppress(OSError):  # it may be what forbade the draft
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and draft.name in str(error):
            # nobody knows the draft, and libraries tell its name in a sentence of their own
            error.strerror, error.filename = os.strerror(error.errno), str(path)
            del error.filename2
        raise
    if durable:
        sync_folder(path.parent)


def remove_drafts(folder: Path, name: str) -> None:
    """Remove what killed writers left of a file; nobody may be writing it.

    Args:
        folder: Where the file stands.
        name: Its name; a `*` stands for any characters.
    """
    for draft in folder.glob(f".{name}.*.tmp"):
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_file(path: Path) -> None:
    # opened for writing, because a file that a cell opens for reading counts as its data
    with path.open("rb+") as file:
        os.fsync(file.fileno())
