"""What a certificate says of an exception: the error, and the line of the author's code it left."""

import traceback
from pathlib import Path

from bench.api.missing_method import PROJECT, missing_method, shown_path
from bench.conformance.certificate import CheckFailed
from bench.timing.reason import met_the_system, ran_out_of_memory

HARNESS = PROJECT / "bench"
STANDARD_LIBRARY = Path(traceback.__file__).parent


def crash_of(error: Exception, where: str) -> CheckFailed:
    """What a check, or building a variant, comes to where it raises what nobody expected.

    Args:
        error: What was raised.
        where: The place, in words.
    """
    machine = ran_out_of_memory(error) or met_the_system(error)
    return CheckFailed(f"{where}: {crash_sentence(error)}", environmental=machine)


def crash_sentence(error: Exception) -> str:
    """The error in one sentence, with its place; a missing method is called one."""
    missing = missing_method(error)
    if missing:
        return missing
    first = next(iter(str(error).strip().splitlines()), "")
    said = f": {first}" if first else ""
    return f"{type(error).__name__}{said}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """File and line of the innermost frame outside the harness and libraries, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _of_an_author(frame.filename)]
    if not theirs:
        return ""
    return f" ({shown_path(theirs[-1].filename)}:{theirs[-1].lineno})"


def _of_an_author(file: str) -> bool:
    path = Path(file)
    if "site-packages" in path.parts or not path.is_file():  # wrappers of types have no file
        return False
    if path.is_relative_to(PROJECT):
        return not path.is_relative_to(HARNESS)
    return not path.is_relative_to(STANDARD_LIBRARY)
