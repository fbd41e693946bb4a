"""Commands and sentences as a reader elsewhere may see them: without a folder of this machine."""

import re
import shlex
from collections.abc import Callable
from pathlib import PurePath

DATA_DIR = "DATA_DIR"
"""Stands for the folder of the data where a report is published."""
STORAGE = "STORAGE"
"""Stands for the database of a study, whose address may hold a password."""
FILES = ("--plugin", "--reuse", "--spec")
"""Options that name a file."""


def as_published(command: str) -> str:
    """A command line that names no folder and no database of this machine.

    >>> as_published("python -m bench study --storage mysql://me:secret@h/db --out /home/me/x")
    'python -m bench study --storage STORAGE --out runs/x'
    >>> as_published("python -m bench run --plugin /home/me/mine.py --reuse=/home/me/quick.parquet")
    'python -m bench run --plugin mine.py --reuse=quick.parquet'
    """
    command = with_run_folder(with_data_dir(command, DATA_DIR))
    for option in FILES:
        command = _changed(command, option, file_name)
    return _changed(command, "--storage", lambda address: STORAGE)


def without_folders(text: str) -> str:
    """A text in which no file or folder of this machine is named.

    >>> without_folders("words is not here (/home/me/data has no folder words); see https://a.b/c")
    'words is not here (… has no folder words); see https://a.b/c'
    """
    return re.sub(r"(?<![\w/:.<])~?/(?:[^\s/'\",;()]+/)*[^\s/'\",;()]+", "…", text)


def file_name(path: str) -> str:
    """The name of a file that a whole path of this machine names; another path as it is.

    >>> file_name("/home/me/mine.py"), file_name("plugins/mine.py")
    ('mine.py', 'plugins/mine.py')
    """
    return PurePath(path).name if PurePath(path).is_absolute() else path


def with_data_dir(command: str, data_dir: str) -> str:
    """A command line that names another data directory where it named one.

    >>> with_data_dir("python -m bench run --data-dir '/my data' --seeds 3", "DATA_DIR")
    'python -m bench run --data-dir DATA_DIR --seeds 3'
    >>> with_data_dir("python -m bench run --data-dir=/data", "DATA_DIR")
    'python -m bench run --data-dir=DATA_DIR'
    """
    return _changed(command, "--data-dir", lambda folder: data_dir)


def with_run_folder(command: str) -> str:
    """A command line that writes below `runs/` where it named a whole path of this machine.

    >>> with_run_folder("python -m bench run --seeds 3 --out /home/me/first")
    'python -m bench run --seeds 3 --out runs/first'
    >>> with_run_folder("python -m bench run --out=here")
    'python -m bench run --out=here'
    """

    def near(folder: str) -> str:
        path = PurePath(folder)
        return f"runs/{path.name}" if path.is_absolute() else folder

    return _changed(command, "--out", near)


def run_folder_of(command: str) -> str:
    """The run folder that a command line names; empty where it names none.

    >>> run_folder_of("python -m bench run --out 'runs/my run'"), run_folder_of("bench analyze x")
    ('runs/my run', '')
    """
    found = [""]

    def seen(folder: str) -> str:
        found.append(folder)
        return folder

    _changed(command, "--out", seen)
    return found[-1]


def _changed(command: str, option: str, change: Callable[[str], str]) -> str:
    if option not in command:
        return command
    try:
        words = shlex.split(command)
    except ValueError:  # not written by us
        return command
    for at, word in enumerate(words):
        if word.startswith(f"{option}="):
            words[at] = f"{option}={change(word.partition('=')[2])}"
        elif at and words[at - 1] == option:
            words[at] = change(word)
    return shlex.join(words)
