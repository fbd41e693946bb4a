"""A plug-in is imported in a copy of this process first: one that ends it ends the copy."""

import os
import sys
from pathlib import Path

from bench.api.errors import BenchError
from bench.api.loading import load_plugin
from bench.api.process_state import signal_name

SURVIVED = 77
"""Exit code of a copy that came to its end, whatever the import raised."""


def refuse_deadly_plugin(path: Path) -> None:
    """Import a plug-in in a copy of this process, which shows what no `except` can catch.

    Raises:
        BenchError: The copy was ended by the plug-in.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    copy = os.fork()
    if copy == 0:
        _import_in_silence(path)
    _, status = os.waitpid(copy, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != SURVIVED:
        how = f"exit code {code}" if code >= 0 else signal_name(-code)
        raise BenchError(
            f"plug-in {path} ends the process when it is imported ({how}); mend the file."
        )


def _import_in_silence(path: Path) -> None:
    """What is printed and raised comes again where the file is imported in earnest."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        load_plugin(path)
    finally:
        os._exit(SURVIVED)
