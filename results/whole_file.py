"""Files that are replaced as a whole: a reader sees the old one or the new one, never half."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from results.ledger import sync_folder


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A draft beside a file, which takes its place at the end and is on the disk by then.

    An error or an interrupt in between leaves the file as it was.

    Args:
        path: The file; its folder is made where it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
