"""Errors that a user can act on: what was asked, why not, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

from bench.api.plain_text import shortened

MOST_QUOTED = 200
"""Characters of a name that an error repeats."""


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
        name = shortened(name, MOST_QUOTED)
        close = get_close_matches(name, names, n=1, cutoff=0.6)
        hint = f"; did you mean {close[0]!r}?" if close else ";"
        every = f"known are {', '.join(names) or 'none'}."
        where = f"`{see}` has them all." if see else every
        return cls(f"no {kind} named {name!r}{hint} {where}")


class InvalidSelector(BenchError):
    """A selector that the grammar cannot read."""


class InvalidConfig(BenchError):
    """An option with a wrong name, type or value."""


class Refused(BenchError):
    """A combination without meaning; the message is the reason a table prints."""


class DataUnavailable(BenchError):
    """A data set that is not on this machine; the message names the command that fetches it."""


class DataDamaged(BenchError):
    """A data file that is truncated, empty, misaligned or wrongly encoded; names file and line."""


class Diverged(BenchError):
    """Training produced a value that is not finite."""
