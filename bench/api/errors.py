"""Errors that a user can act on: what was asked, why not, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

from bench.api.plain_text import shortened

MOST_QUOTED = 200
"""Characters of a name that an error repeats."""
MOST_SUGGESTED = 3
"""Names that an error offers in the place of a wrong one."""


class BenchError(Exception):
    """Base of every error that the bench raises on purpose."""


class UnknownName(BenchError):
    """A name that no registry, task, preset or option knows."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], *, see: str = "") -> "UnknownName":
        """Build the message: the name asked for, the closest known one, and where to look.

        >>> str(UnknownName.among("task", "copyng", ["copying", "recall"], see="bench list tasks"))
        "no task named 'copyng'; did you mean 'copying'? `bench list tasks` has them all."
        """
        names = sorted(known)
        every = f"known are {', '.join(names) or 'none'}."
        where = f"`{see}` has them all." if see else every
        hint = suggestion(name, names)
        return cls(f"no {kind} named {shortened(name, MOST_QUOTED)!r}{hint} {where}")


def suggestion(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Which names may have been meant: those that begin with it, hold it, or are written like it.

    >>> suggestion("copy", ["lead_copy", "cope", "copynet", "recall"])
    "; did you mean 'copynet' or 'lead_copy'?"
    >>> suggestion("recalls", ["recall", "rope"]), suggestion("nothing", ["rope"])
    ("; did you mean 'recall'?", ';')

    Args:
        name: What was asked for.
        known: Names that there are.
        likeness: How alike two names are written, at least, between 0 and 1.
    """
    name = shortened(name, MOST_QUOTED)
    begin, hold = _longer_names(name.lower(), known)
    found = [*begin, *hold] or get_close_matches(name, sorted(known), n=1, cutoff=likeness)
    if not found:
        return ";"
    *others, last = [repr(one) for one in found[:MOST_SUGGESTED]]
    first = f"{', '.join(others)} or " if others else ""
    return f"; did you mean {first}{last}?"


def _longer_names(name: str, known: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names that begin with this one, and others that hold it, short ones first.

    A few letters are in many names and say nothing.
    """
    names = sorted(known, key=lambda one: (len(one), one))
    begin = [one for one in names if len(name) > 2 and one.lower().startswith(name)]
    hold = [one for one in names if len(name) > 3 and name in one.lower()]
    return begin, [one for one in hold if one not in begin]


class InvalidSelector(BenchError):
    """A selector that the grammar cannot read."""


class InvalidConfig(BenchError):
    """An option with a wrong name, type or value."""


class Refused(BenchError):
    """A combination without meaning; the message is the reason a table prints."""


class DataUnavailable(BenchError):
    """A data set that is not on this machine; the message says how to get it."""


class DataDamaged(BenchError):
    """A data file that is truncated, empty, misaligned or wrongly encoded; names file and line."""


class Diverged(BenchError):
    """Training produced a value that is not finite."""
