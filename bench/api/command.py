"""Command lines that people paste into a shell, written by plans and by reports alike."""

import shlex
from collections.abc import Sequence


def run_command(*words: str, plugins: Sequence[str] = (), data_dir: str = "") -> str:
    """`bench run` with some words, quoted for a shell.

    >>> run_command("--cell", "quality copying @ lm", plugins=["mine.py"])
    "python -m bench run --cell 'quality copying @ lm' --plugin mine.py"

    Args:
        words: Options and their values.
        plugins: Files that register names beside the bench's own.
        data_dir: The data directory; empty where none was named.
    """
    data = ["--data-dir", data_dir] if data_dir else []
    files = [word for path in plugins for word in ("--plugin", path)]
    return shlex.join(["python", "-m", "bench", "run", *words, *data, *files])
