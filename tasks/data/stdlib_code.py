"""Source code of Python's standard library: text that every machine has, split by module.

It differs from one version of Python to the next, so a table says which version it is.
"""

import hashlib
import platform
import sysconfig
from pathlib import Path
from typing import NamedTuple

from bench.api.errors import DataUnavailable
from tasks.data.files import read_text

MODULES = {
    "train": (
        "argparse", "ast", "bdb", "calendar", "cmd", "configparser", "copy", "csv", "dataclasses",
        "difflib", "dis", "enum", "fractions", "functools", "heapq", "inspect", "ipaddress",
        "locale", "mailbox", "optparse", "pickle", "pprint", "shutil", "statistics", "tarfile",
        "textwrap", "typing",
    ),
    "validation": ("bisect", "fileinput", "gzip", "queue", "shlex", "numbers", "tempfile"),
    "test": ("code", "contextlib", "filecmp", "glob", "sched", "selectors", "socketserver"),
}  # fmt: skip
"""Modules that are one file in Python 3.11 and later; no module is in two parts."""


class ModuleTexts(NamedTuple):
    """Texts of the parts."""

    parts: dict[str, str]
    note: str


def load_stdlib_code(folder: Path | None = None) -> ModuleTexts:
    """Read the modules; `folder` replaces that of the running Python's library.

    Raises:
        DataUnavailable: The library was installed without its source.
        DataDamaged: A module is empty or no UTF-8.
    """
    library = folder or Path(sysconfig.get_path("stdlib"))
    parts, hashes = {}, []
    for part, modules in MODULES.items():
        texts = []
        for module in modules:
            path = library / f"{module}.py"
            if not path.is_file():
                raise DataUnavailable(
                    f"stdlib_code: {path} is missing; install Python {platform.python_version()} "
                    f"with the source of its standard library."
                )
            file = read_text(path, allow_blank=True)
            texts.append("\n".join(file.lines) + "\n")
            hashes.append(file.sha256)
        parts[part] = "".join(texts)
    return ModuleTexts(parts, _note(hashes))


def _note(hashes: list[str]) -> str:
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()[:12]
    return f"standard library of Python {platform.python_version()}: {len(hashes)} files {digest}"
