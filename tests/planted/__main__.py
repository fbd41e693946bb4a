"""Plant every defect and print what noticed it: `python -m tests.planted`."""

import sys
import time
from collections import Counter
from collections.abc import Sequence

import click
import torch
from tabulate import tabulate

from bench.api.loading import load_package
from tests.planted.defect import Defect, defects
from tests.planted.finding import Found, TookTooLong, by_tests, notice

EXPECTED = "as expected"


def verdict(defect: Defect, found: Found) -> str:
    """Whether a defect was noticed by what should notice it."""
    if not found.red:
        return "no answer" if found.unanswered else "survived"
    return EXPECTED if defect.test or defect.check in found.red else "by another check"


def _noticed(defect: Defect, *, all_checks: bool) -> Found:
    try:
        return notice(defect, all_checks=all_checks)
    except TookTooLong as reason:
        return Found({}, unanswered=str(reason))


def expect_green(tests: Sequence[str]) -> None:
    """Check that what should notice a defect does not fail without it.

    Raises:
        click.ClickException: A unit test is red as the code is, and would notice anything.
    """
    for test in tests:
        for failed, sentence in by_tests(test).red.items():
            raise click.ClickException(
                f"{test} fails without any defect, so that it notices nothing; mend it first. "
                f"{failed}: {sentence}"
            )


def table(rows: Sequence[tuple[Defect, Found]]) -> str:
    """One line a defect."""
    lines = [
        [defect.axis, defect.name, defect.variant or defect.test, found.by[:60], verdict(*row)]
        for row in rows
        for defect, found in (row,)
    ]
    return tabulate(lines, ["axis", "defect", "asked", "red", "verdict"], tablefmt="simple")


@click.command()
@click.option("--all-checks", is_flag=True, help="Run whole certificates, not the one check.")
@click.option("--axis", help="Defects of one file alone.")
@click.option("--asked", type=click.Choice(["all", "certificates", "tests"]), default="all")
@click.option("--name", help="One defect, with the sentences that it gets.")
def main(all_checks: bool, axis: str | None, asked: str, name: str | None) -> None:
    """Plant every defect; the exit code is 1 where one was not noticed as expected."""
    torch.set_num_threads(1)
    for package in ("variants", "tasks"):
        load_package(package)
    chosen = [d for d in defects() if axis in (None, d.axis) and name in (None, d.name)]
    if asked != "all":
        chosen = [defect for defect in chosen if bool(defect.test) == (asked == "tests")]
    expect_green(sorted({defect.test for defect in chosen if defect.test}))
    start = time.process_time()
    rows = [(defect, _noticed(defect, all_checks=all_checks)) for defect in chosen]
    print(table(rows))
    if name is not None:
        for _, found in rows:
            print("\n".join(f"{check}: {sentence}" for check, sentence in found.red.items()))
    counts = Counter(verdict(*row) for row in rows)
    tests = sum(bool(defect.test) for defect in chosen)
    print(
        f"\n{len(rows)} defects, {len(rows) - tests} asked of certificates and {tests} of unit "
        f"tests: {dict(counts)}; {time.process_time() - start:.0f} CPU-seconds and those of tests"
    )
    sys.exit(bool(set(counts) - {EXPECTED}))


if __name__ == "__main__":
    main()
