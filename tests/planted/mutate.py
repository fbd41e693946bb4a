"""Draw mutants at random and say what kills them: `python -m tests.planted.mutate --seed 0`.

A mutant is killed by the certificate of a variant that runs its line, or else by the unit tests of
the same name as its file. What survives both is a hole in the checks, or a change that changes
nothing; `survivors.json` names the latter, each with its reason.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import click
import torch
from tabulate import tabulate

from bench.api.loading import load_package
from tests.planted.finding import Found, TookTooLong, by_certificate, by_tests, isolated
from tests.planted.mutations import Mutant, files, mutants
from tests.planted.planting import ROOT, NothingPlanted, planted
from tests.planted.reach import Reach, recorded, watched

PATHS = ("variants", "bench/api")
KNOWN = Path(__file__).parent / "survivors.json"
"""Name of a mutant -> why nothing can notice it."""
ORDER: tuple[Sequence[str] | None, ...] = (("oracle",), ("splits", "gradients"), None)
"""Checks in the order in which they are tried; None for all."""
VARIANTS = 3
"""Certificates that are tried, the cheapest first."""
LIMIT_S = 90
"""Longest CPU time of the certificates of one mutant."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    status: str
    """`certificate`, `unit test`, `equivalent` (it survived, and is known to), `survived`, or
    `no answer` where the machine was too busy for one."""
    by: str
    """The variant and its check, the test, or the reason."""


def judge(mutant: Mutant, reaches: Sequence[Reach], known: dict[str, str]) -> Verdict:
    """Plant a mutant and see what kills it.

    Raises:
        NothingPlanted: It changes no function that is alive.
    """
    here = f"{mutant.file}:{mutant.line}"
    reaching = [reach.variant for reach in reaches if here in reach.lines][:VARIANTS]
    with planted(mutant.file, mutant.changed):
        found = isolated(lambda: _certified(reaching), otherwise="hangs", limit_s=LIMIT_S)
    if found.red:
        return Verdict(mutant, "certificate", found.by)
    tests = _tests_of(mutant.file)
    if tests and _green(tests):
        with planted(mutant.file, mutant.changed):
            found = by_tests(*tests)
        if found.red:
            return Verdict(mutant, "unit test", found.by)
    reason = known.get(mutant.name, "")
    if reason:
        return Verdict(mutant, "equivalent", reason)
    return Verdict(mutant, "survived", ", ".join(reaching) or "no certificate runs it")


def _certified(variants: Sequence[str]) -> Found:
    for variant in variants:
        for checks in ORDER:
            try:
                red = by_certificate(variant, checks).red
            except Exception as error:  # noqa: BLE001  a mutant may break anything
                red = {"resolve": str(error)}
            if red:
                check = next(iter(red))
                return Found({f"{variant}: {check}": red[check]})
    return Found({})


def _tests_of(file: str) -> tuple[Path, ...]:
    """Tests of the same name, or where there are none all of the folder beside it."""
    folder, stem = ROOT / "tests" / Path(file).parent, Path(file).stem
    own = sorted(folder.glob(f"test_{stem}.py")) + sorted(folder.glob(f"test_{stem}_*.py"))
    return tuple(own) or tuple(sorted(folder.glob("test_*.py")))


@cache
def _green(tests: tuple[Path, ...]) -> bool:
    """Whether unit tests pass as the code is; others would kill everything."""
    return not by_tests(*tests).red


def draw(paths: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """Mutants of some files, in the order in which they are judged."""
    known = [mutant for path in paths for file in files(path) for mutant in mutants(file)]
    return random.Random(seed).sample(known, min(count, len(known)))


@click.command()
@click.option("--seed", default=0, help="Seed of the draw.")
@click.option("--count", default=200, help="Mutants to draw.")
@click.option("--path", "paths", multiple=True, default=PATHS, help="Folder or file to mutate.")
@click.option("--variant", "names", multiple=True, help="Ask these certificates alone, not all.")
@click.option("--out", type=click.Path(path_type=Path), help="JSON file for all verdicts.")
@click.option(
    "--cache",
    "kept",
    type=click.Path(path_type=Path),
    default=ROOT / "runs" / "planted" / "reach.json",
    help="File that keeps which certificate runs which line.",
)
def main(
    seed: int,
    count: int,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    out: Path | None,
    kept: Path,
) -> None:
    """Draw mutants, judge them, and print what survived."""
    torch.set_num_threads(1)
    for package in ("variants", "tasks"):
        load_package(package)
    reaches = watched(names) if names else recorded(kept)
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    found: list[Verdict] = []
    start = time.monotonic()
    for mutant in draw(paths, seed, count):
        try:
            found.append(judge(mutant, reaches, known))
        except TookTooLong as reason:
            found.append(Verdict(mutant, "no answer", str(reason)))
        except (NothingPlanted, SyntaxError, ValueError):
            continue  # a decorator, a default, or code that is only run while it is imported
        if out is not None:
            rows = [{**asdict(one.mutant), "status": one.status, "by": one.by} for one in found]
            out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    survived = [one for one in found if one.status == "survived"]
    rows = [[one.mutant.line, one.mutant.name, one.by[:60]] for one in survived]
    print(tabulate(rows, ["line", "survived", "certificates"], tablefmt="simple"))
    counts = dict(Counter(one.status for one in found))
    print(f"{len(found)} mutants in {time.monotonic() - start:.0f} s: {counts}")


if __name__ == "__main__":
    main()
