"""Command lines that people paste into a shell, written by plans and by reports alike."""

import shlex
from collections.abc import Sequence

USUAL_PRESET = "quick"
"""The preset of a run that names none."""
EXAMPLES = 256
"""Test examples of a probe where nobody says how many."""


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
    return shlex.join(["python", "-m", "bench", "run", *words, *data, *_files(plugins)])


def verify_command(*words: str, plugins: Sequence[str] = ()) -> str:
    """`bench verify` with some words, quoted for a shell.

    >>> verify_command("dot[loss=coverage_loss]", plugins=["my loss.py"])
    "python -m bench verify 'dot[loss=coverage_loss]' --plugin 'my loss.py'"
    """
    return shlex.join(["python", "-m", "bench", "verify", *words, *_files(plugins)])


def _files(plugins: Sequence[str]) -> list[str]:
    return [word for path in plugins for word in ("--plugin", path)]
