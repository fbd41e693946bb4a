"""What a certificate says of an exception: the error, and the line of the author's code it left."""

import traceback
from pathlib import Path
from types import FrameType

PROJECT = Path(__file__).parents[2]
HARNESS = PROJECT / "bench"
STANDARD_LIBRARY = Path(traceback.__file__).parent


def crash_sentence(error: Exception) -> str:
    """The error in one sentence, with its place; a missing method is called one."""
    missing = _missing_method(error)
    if missing:
        return missing
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}{place_of(error)}"


def place_of(error: BaseException) -> str:
    """File and line of the innermost frame outside the harness and libraries, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _of_an_author(frame.filename)]
    if not theirs:
        return ""
    return f" ({_shown(theirs[-1].filename)}:{theirs[-1].lineno})"


def _of_an_author(file: str) -> bool:
    path = Path(file)
    if "site-packages" in path.parts or not path.is_file():  # wrappers of types have no file
        return False
    if path.is_relative_to(PROJECT):
        return not path.is_relative_to(HARNESS)
    return not path.is_relative_to(STANDARD_LIBRARY)


def _missing_method(error: Exception) -> str:
    """`X has no oracle(); write it`, where a method of a contract was not overridden."""
    # one with words was raised on purpose, by a method that is there
    if not isinstance(error, NotImplementedError) or str(error):
        return ""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    owner = _owner(frame)
    if owner is None:
        return ""
    file = _shown(frame.f_code.co_filename)
    return f"{owner} has no {frame.f_code.co_name}(); write it (see {file})"


def _owner(frame: FrameType) -> str | None:
    """Name of the class whose method this frame is."""
    owner = frame.f_locals.get("self")
    return None if owner is None else type(owner).__name__


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else path.name
