"""Commands as a reader elsewhere may see them: without a folder of this machine."""

import shlex

DATA_DIR = "DATA_DIR"
"""Stands for the folder of the data where a report is published."""


def with_data_dir(command: str, data_dir: str) -> str:
    """A command line that names another data directory where it named one.

    >>> with_data_dir("python -m bench run --data-dir '/my data' --seeds 3", "DATA_DIR")
    'python -m bench run --data-dir DATA_DIR --seeds 3'
    >>> with_data_dir("python -m bench run --data-dir=/data", "DATA_DIR")
    'python -m bench run --data-dir=DATA_DIR'
    """
    if "--data-dir" not in command:
        return command
    try:
        words = shlex.split(command)
    except ValueError:  # not written by us
        return command
    for at, word in enumerate(words):
        if word.startswith("--data-dir="):
            words[at] = f"--data-dir={data_dir}"
        elif at and words[at - 1] == "--data-dir":
            words[at] = data_dir
    return shlex.join(words)
