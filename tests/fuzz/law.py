"""The law of every attack: a value or one sentence, never a traceback or a wrong success."""

import io
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import click

from bench.api.errors import BenchError
from bench.cli.main import cli
from bench.cli.sentences import LONGEST_SENTENCE, ended_with_a_sentence

Case = Callable[[], None]
"""Does one thing with a damaged input; what it raises is judged."""


@dataclass(frozen=True)
class Attack:
    """A kind of damage."""

    name: str
    cases: Callable[[random.Random, Path], Iterator[tuple[str, Case]]]
    """Endless cases: what is damaged, and what is done with it. The folder is theirs."""
    few: int
    """Cases of the fast suite."""
    many: int
    """Cases of the slow suite, for about ten seconds."""


@dataclass
class Outcome:
    """What an attack came to."""

    name: str
    cases: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Broken(AssertionError):
    """A case that broke the law in another way than by a traceback."""


def attempt(attack: Attack, count: int, seed: int, folder: Path) -> Outcome:
    """Try the first cases of an attack; the same seed gives the same ones."""
    found, start = Outcome(attack.name), time.process_time()
    for number, (what, case) in enumerate(attack.cases(random.Random(seed), folder)):
        if number >= count:
            break
        found.cases += 1
        complaint = judged(case)
        if complaint:
            found.failures.append(f"{attack.name} {number} ({what[:300]}): {complaint}")
    found.seconds = time.process_time() - start
    return found


def judged(case: Case) -> str:
    """How a case breaks the law; empty if it keeps it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case()
    except (BenchError, click.ClickException) as error:
        said = str(error)
        return f"{len(said)} characters" if len(said) > LONGEST_SENTENCE else ""
    except Broken as error:
        return str(error)
    except Exception:  # noqa: BLE001  what the law forbids
        return traceback.format_exc(limit=-6)
    return ""


def command(*words: str) -> None:
    """Run a command in this process; its exit code must say what its output says."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = ended_with_a_sentence(lambda: cli(list(words), standalone_mode=False))
    said = err.getvalue()
    if code == 2 and len(said.strip().splitlines()) != 1:
        raise Broken(f"exit code 2 with {len(said.splitlines())} lines: {said[:500]}")
    if code not in (0, 1, 2):
        raise Broken(f"exit code {code}: {said[:500]}")
    if "Traceback" in said or sys.exc_info()[0] is not None:
        raise Broken(said[:2000])
