"""Functions of Python's standard library: sub-tokens of their bodies and of their names.

The data of Allamanis et al., 2016, "A convolutional attention network for extreme summarization of
source code", https://arxiv.org/abs/1602.03001, are Java projects; these are the pure-Python modules
beside the interpreter, under the license of Python (PSF-2.0). They differ from one version of
Python to the next, so a note names version and hash.
"""

import ast
import hashlib
import json
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.api.errors import DataUnavailable
from tasks.data.derived import Arrays, kept_arrays

REVISION = 1
OWN_NAME, STRING, NUMBER = "<self>", "<string>", "<number>"
LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip", "pydoc_data"}
    | {"site-packages", "dist-packages", "__pycache__"}
)
"""Folders of tests, of demonstrations and of other people's code."""
MOST_NAME, LEAST_BODY, MOST_BODY = 6, 4, 200
"""Parts of a name and of a body (sub-tokens); longer bodies are cut."""

_TOKEN = re.compile(
    r"""[rbuf]{0,2}(?P<string>(?:'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))"""
    r"""|(?P<comment>\#[^\n]*)|(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)""",
    re.DOTALL | re.IGNORECASE,
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


class Method(NamedTuple):
    """One function."""

    module: str
    """Module or package at the top, which decides its part."""
    name: tuple[str, ...]
    body: tuple[str, ...]


class Methods(NamedTuple):
    """All functions, and where they came from."""

    rows: tuple[Method, ...]
    note: str


def subtokens(identifier: str) -> list[str]:
    """Parts of an identifier, in lower case.

    >>> subtokens("getHTTPCode_2"), subtokens("__init__")
    (['get', 'http', 'code', '2'], ['init'])
    """
    return [part.lower() for part in _PART.findall(identifier)]


def body_words(text: str, own_name: str) -> list[str]:
    """Sub-tokens of a body without comments and marks, its own name masked.

    >>> body_words("return self.walk_on(n - 1) + 'x'  # again", "walk_on")
    ['return', 'self', '<self>', 'n', '<number>', '<string>']
    """
    words = []
    for found in _TOKEN.finditer(text):
        if found["string"]:
            words.append(STRING)
        elif found["number"]:
            words.append(NUMBER)
        elif found["name"]:
            same = found["name"] == own_name
            words += [OWN_NAME] if same else subtokens(found["name"])
    return words


@cache
def load_methods(folder: Path | None = None, *, cache_dir: Path | None = None) -> Methods:
    """Read all functions of the library; kept in the cache by hash, and by the process.

    Args:
        folder: With Python modules; None for that of the interpreter's library.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: There is no source there.
    """
    folder = folder or Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in folder.rglob("*.py") if _wanted(path.relative_to(folder)))
    if not files:
        raise DataUnavailable(
            f"{folder} holds no Python source; use an interpreter that is installed with its "
            "library as files."
        )
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    total = hashlib.sha256()
    for name, content in contents.items():
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    digest = total.hexdigest()

    def make() -> Arrays:
        rows = [row for name, content in contents.items() for row in _methods(name, content)]
        text = json.dumps(rows).encode()
        return {"json": np.frombuffer(text, dtype=np.uint8)}

    depends = {"files": digest, "revision": REVISION, "python": sys.version_info[:2]}
    stored = json.loads(
        kept_arrays("methods", depends, make, cache_dir=cache_dir)["json"].tobytes()
    )
    rows = tuple(Method(module, tuple(name), tuple(body)) for module, name, body in stored)
    version = ".".join(map(str, sys.version_info[:3]))
    return Methods(rows, f"library of Python {version}: {len(files)} files, {digest[:12]}")


def _wanted(path: Path) -> bool:
    return not LEFT_OUT.intersection(path.parts)


def _methods(path: str, content: bytes) -> Iterator[tuple[str, list[str], list[str]]]:
    """Module, name and body of every function of one file."""
    text = content.decode("utf-8", errors="replace")
    module = Path(path).parts[0].removesuffix(".py")
    with warnings.catch_warnings():
        # escapes in other people's strings
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lines = text.split("\n")
    for node in _functions(tree):
        name = subtokens(node.name)
        if node.name.startswith("__") or not 1 <= len(name) <= MOST_NAME:
            continue
        body = body_words(_text_of(node, lines), node.name)
        if len(body) >= LEAST_BODY:
            yield module, name, body[:MOST_BODY]


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function below, but for those inside the cases of a `match` statement.

    Expressions hold none. Cases are left out because published results rest on these data.
    """
    for field in ("body", "orelse", "handlers", "finalbody"):
        below = getattr(node, field, ())
        for child in below if isinstance(below, list) else ():
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child
            yield from _functions(child)


def _text_of(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]) -> str:
    """The source of the body, without what documents it."""
    documented = ast.get_docstring(node, clean=False) is not None
    statements = node.body[1:] if documented else node.body
    if not statements:
        return ""
    first, last = statements[0], statements[-1]
    kept = list(lines[first.lineno - 1 : last.end_lineno])
    kept[0] = kept[0].encode()[first.col_offset :].decode()
    return "\n".join(kept)
