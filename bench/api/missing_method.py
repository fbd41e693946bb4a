"""What an error says of a method that a contract asks for and a class does not have."""

import traceback
from difflib import get_close_matches
from pathlib import Path
from types import CodeType

from bench.api.plain_text import message_of

PROJECT = Path(__file__).parents[2]


def missing_method(error: BaseException) -> str:
    """``X has no method `energy`; write it``, or nothing where an error says something else.

    Hooks that a class has to write raise a bare `NotImplementedError` in the class of their axis.
    """
    # one with words was raised on purpose, by a method that is there
    bare = isinstance(error, NotImplementedError) and message_of(error) == type(error).__name__
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)] if bare else []
    owner = frames[-1].f_locals.get("self") if frames else None
    if owner is None:
        return ""
    code = frames[-1].f_code
    written = f", only `{near}`" if (near := _misspelled(type(owner), code)) else ""
    return (
        f"{type(owner).__name__} has no method `{code.co_name}`{written}; write it "
        f"(see {shown_path(code.co_filename)})"
    )


def shown_path(file: str) -> str:
    """A file as messages name it: below this project, or alone."""
    path = Path(file)
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else path.name


def _misspelled(owner: type, hook: CodeType) -> str:
    """A method that the author wrote and whose name is nearly that of a hook, or nothing."""
    own: set[str] = set()
    for cls in owner.__mro__:
        if getattr(vars(cls).get(hook.co_name), "__code__", None) is hook:
            break
        own |= {name for name, value in vars(cls).items() if callable(value)}
    else:
        return ""  # something wraps the hook, so nobody knows whose it is
    return next(iter(get_close_matches(hook.co_name, sorted(own), n=1, cutoff=0.75)), "")
