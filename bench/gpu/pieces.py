"""Pieces of a measurement that must not be lost when time ends: done one by one, kept at once."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.api.whole_file import written_whole
from bench.timing.reason import Reason, attempt
from bench.timing.timer import Clock
from results.json_values import Json, JsonObject, as_number, as_object, as_text

STATE = "gpu.json"
"""File in the run folder that says what became of each piece."""
ATTEMPTS = 2
"""How often a piece is tried that failed."""

Found = Json | Reason
"""What a piece leaves beside rows of the run folder, or why it came to nothing."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of the whole that is done or not done."""

    name: str
    """Key in the file; says what was asked and of which code, so that another question is another
    piece, and so is the same one after an edit."""
    title: str
    """What the progress line says."""
    seconds: float
    """Expected wall time (s)."""
    work: Callable[[float], Found]
    """Does it in so many seconds at most."""


class State:
    """What became of each piece, in a file that is whole at any time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE
        try:
            held: Json = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            held = {}
        self.pieces: dict[str, Json] = {**as_object(as_object(held).get("pieces"))}

    def of(self, name: str) -> JsonObject:
        """What is known of a piece; empty before its first attempt."""
        return as_object(self.pieces.get(name))

    def open(self, piece: Piece) -> bool:
        """Whether a piece is still to be done."""
        known = self.of(piece.name)
        if as_text(known.get("status")) == "ok":
            return False
        return (as_number(known.get("attempts")) or 0) < ATTEMPTS

    def keep(self, piece: Piece, found: Found, seconds: float) -> None:
        """Write what a piece came to."""
        reason = found if isinstance(found, Reason) else None
        self.pieces[piece.name] = {
            "title": piece.title,
            "status": "ok" if reason is None else reason.status,
            "detail": "" if reason is None else reason.detail,
            "seconds": round(seconds, 1),
            "attempts": int(as_number(self.of(piece.name).get("attempts")) or 0) + 1,
            "found": None if isinstance(found, Reason) else found,
        }
        text = json.dumps({"pieces": self.pieces}, indent=1, allow_nan=False)
        with written_whole(self.path) as draft:
            draft.write_text(text, encoding="utf-8")


def do_pieces(
    pieces: Sequence[Piece],
    state: State,
    minutes: float,
    say: Callable[[str], None],
    clock: Clock = time.monotonic,
) -> list[Piece]:
    """Do in order what is open and fits the time; returns what is still open.

    Args:
        pieces: In the order of their worth.
        state: What was done before.
        minutes: Wall time of this call.
        say: Told a line before and after each piece.
        clock: Seconds; only differences matter.
    """
    end = clock() + 60 * minutes
    todo = [piece for piece in pieces if state.open(piece)]
    if len(todo) < len(pieces):
        say(f"{len(pieces) - len(todo)} of {len(pieces)} pieces were done before.")
    for number, piece in enumerate(todo, start=1):
        left = end - clock()
        if piece.seconds > left:
            say(f"[{number}/{len(todo)}] later      {piece.title}: needs {piece.seconds:.0f} s")
            continue
        begin = clock()
        found = attempt(partial(piece.work, left))
        state.keep(piece, found, clock() - begin)
        status = found.status if isinstance(found, Reason) else "ok"
        say(
            f"[{number}/{len(todo)}] {status:<10} {piece.title}: {clock() - begin:.0f} s; "
            f"{max(0.0, end - clock()) / 60:.1f} min left"
        )
    return [piece for piece in pieces if state.open(piece)]
